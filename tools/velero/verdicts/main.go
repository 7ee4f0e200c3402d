// Command velero-verdicts asks Velero's controllers about schedules and backups, as they would see them together.
//
// It reads a JSON list of objects a line and answers each with a line: "" where Velero makes the backups and one is
// always there, else what it says. The controllers of schedules, of backups and of garbage are Velero's; the API server
// behind them is the client that controller-runtime has for tests, and the storage is played: every location is
// available, and nothing is copied. Where no location is given the one that Velero names default is there.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	velero "github.com/vmware-tanzu/velero/pkg/apis/velero/v1"
	"github.com/vmware-tanzu/velero/pkg/controller"
	"github.com/vmware-tanzu/velero/pkg/discovery"
	"github.com/vmware-tanzu/velero/pkg/metrics"
	biav2 "github.com/vmware-tanzu/velero/pkg/plugin/velero/backupitemaction/v2"

	"github.com/vmware-tanzu/velero/pkg/plugin/clientmgmt"
	"github.com/vmware-tanzu/velero/pkg/util/logging"
)

// server is the part of discovery that a backup asks for.
type server struct{ discovery.Helper }

func (server) ServerVersion() *version.Info { return &version.Info{Major: "1", Minor: "35"} }

// plugins ends a backup that was validated: there is nothing to copy to.
type plugins struct{ clientmgmt.Manager }

func (plugins) GetBackupItemActionsV2() ([]biav2.BackupItemAction, error) {
	return nil, errors.New("nothing is copied")
}

func (plugins) CleanupClients() {}

type world struct {
	client.Client
	log      *logrus.Logger
	backups  reconciler
	schedule reconciler
	garbage  reconciler
}

type reconciler interface {
	Reconcile(context.Context, ctrl.Request) (ctrl.Result, error)
}

func made(known *runtime.Scheme, objects []client.Object) world {
	log := logrus.New()
	log.SetOutput(io.Discard)
	asked := fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build()
	counted := metrics.NewServerMetrics()
	return world{
		Client: asked,
		log:    log,
		backups: controller.NewBackupReconciler(
			context.Background(), server{}, nil, log, logrus.PanicLevel,
			func(logrus.FieldLogger) clientmgmt.Manager { return plugins{} },
			controller.NewBackupTracker(), asked, "default", false, 720*time.Hour, "", time.Minute, time.Minute, time.Hour,
			nil, counted, nil, logging.FormatJSON, nil, 1, false, 1, 1, asked, "",
		),
		schedule: controller.NewScheduleReconciler("", log, asked, counted, false),
		garbage:  controller.NewGCReconciler(log, asked, time.Hour),
	}
}

// validated has a backup looked at as when its turn has come, and returns it.
func (w world) validated(ctx context.Context, key types.NamespacedName) (*velero.Backup, error) {
	backup := &velero.Backup{}
	if err := w.Get(ctx, key, backup); err != nil {
		return nil, err
	}
	backup.Status.Phase = velero.BackupPhaseReadyToStart
	if err := w.Update(ctx, backup); err != nil {
		return nil, err
	}
	if _, err := w.backups.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
		return nil, err
	}
	backup = &velero.Backup{}
	if err := w.Get(ctx, key, backup); err != nil {
		return nil, err
	}
	if backup.Status.Phase == velero.BackupPhaseFailedValidation {
		return nil, errors.New(strings.Join(backup.Status.ValidationErrors, "; "))
	}
	return backup, nil
}

// scheduled has a schedule make the backup that is due, and looks whether garbage collection leaves it until the next.
func (w world) scheduled(ctx context.Context, key types.NamespacedName) error {
	if _, err := w.schedule.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
		return err
	}
	schedule := &velero.Schedule{}
	if err := w.Get(ctx, key, schedule); err != nil {
		return err
	}
	if schedule.Status.Phase == velero.SchedulePhaseFailedValidation {
		return errors.New(strings.Join(schedule.Status.ValidationErrors, "; "))
	}
	found := &velero.BackupList{}
	if err := w.List(ctx, found, client.MatchingLabels{velero.ScheduleNameLabel: schedule.Name}); err != nil {
		return err
	}
	if len(found.Items) != 1 {
		return fmt.Errorf("schedule %s made %d backups", key, len(found.Items))
	}
	backup, err := w.validated(ctx, client.ObjectKeyFromObject(&found.Items[0]))
	if err != nil {
		return err
	}
	runs, err := cron.ParseStandard(schedule.Spec.Schedule)
	if err != nil {
		return err
	}
	first := runs.Next(time.Now())
	return w.collected(ctx, backup, runs.Next(first).Sub(first))
}

// collected makes a backup older by the time between two runs, and asks whether it is to be deleted by then.
func (w world) collected(ctx context.Context, backup *velero.Backup, apart time.Duration) error {
	backup.Status.Expiration.Time = backup.Status.Expiration.Add(-apart)
	if err := w.Update(ctx, backup); err != nil {
		return err
	}
	if _, err := w.garbage.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(backup)}); err != nil {
		return err
	}
	deletions := &velero.DeleteBackupRequestList{}
	if err := w.List(ctx, deletions); err != nil {
		return err
	}
	if len(deletions.Items) > 0 {
		return fmt.Errorf("backup %s is deleted when the next one is due, after %s", backup.Name, apart)
	}
	return nil
}

// read is a line as objects of the API server that have stood there for some years.
func read(known *runtime.Scheme, line []byte) ([]client.Object, error) {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return nil, err
	}
	found, located := []client.Object{}, false
	namespaces := map[string]bool{}
	for _, each := range raw {
		var meta metav1.TypeMeta
		if err := json.Unmarshal(each, &meta); err != nil {
			return nil, err
		}
		if !known.Recognizes(meta.GroupVersionKind()) || meta.GroupVersionKind().Group != velero.SchemeGroupVersion.Group {
			continue
		}
		empty, err := known.New(meta.GroupVersionKind())
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(each, empty); err != nil {
			return nil, err
		}
		object := empty.(client.Object)
		object.SetCreationTimestamp(metav1.NewTime(time.Now().AddDate(-5, 0, 0)))
		namespaces[object.GetNamespace()] = true
		if location, is := object.(*velero.BackupStorageLocation); is {
			location.Status.Phase = velero.BackupStorageLocationPhaseAvailable
			located = true
		}
		found = append(found, object)
	}
	for namespace := range namespaces {
		if !located {
			location := &velero.BackupStorageLocation{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: namespace}}
			location.Status.Phase = velero.BackupStorageLocationPhaseAvailable
			found = append(found, location)
		}
	}
	return found, nil
}

func verdict(known *runtime.Scheme, line []byte) error {
	objects, err := read(known, line)
	if err != nil {
		return err
	}
	asked, ctx := made(known, objects), context.Background()
	for _, object := range objects {
		key := client.ObjectKeyFromObject(object)
		switch object.(type) {
		case *velero.Schedule:
			err = asked.scheduled(ctx, key)
		case *velero.Backup:
			_, err = asked.validated(ctx, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func main() {
	known := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(known))
	utilruntime.Must(velero.AddToScheme(known))
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		said := ""
		if refused := verdict(known, lines.Bytes()); refused != nil {
			said = refused.Error()
		}
		if err := answers.Encode(said); err != nil {
			panic(err)
		}
	}
}
