// Command lws-verdicts asks the webhook of LeaderWorkerSet about objects.
//
// It reads a JSON list of objects a line and answers each with a line: "" where the webhook takes every LeaderWorkerSet,
// after its own defaults and those of the CRD, else what it says.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/util/intstr"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	"sigs.k8s.io/lws/pkg/webhooks"
)

// defaulted is a LeaderWorkerSet with the defaults of its CRD, which the API server sets before it asks the webhook.
func defaulted() *lws.LeaderWorkerSet {
	one, none := int32(1), int32(0)
	object := &lws.LeaderWorkerSet{}
	object.Spec.Replicas = &one
	size := one
	object.Spec.LeaderWorkerTemplate.Size = &size
	object.Spec.RolloutStrategy.RollingUpdateConfiguration = &lws.RollingUpdateConfiguration{
		MaxUnavailable: intstr.FromInt32(1), MaxSurge: intstr.FromInt32(0), Partition: &none,
	}
	return object
}

func asked(object *lws.LeaderWorkerSet) error {
	ctx, hook := context.Background(), &webhooks.LeaderWorkerSetWebhook{}
	if err := hook.Default(ctx, object); err != nil {
		return err
	}
	_, err := hook.ValidateCreate(ctx, object)
	return err
}

func verdict(line []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return err
	}
	for _, each := range raw {
		object := defaulted()
		if err := json.Unmarshal(each, object); err != nil {
			return err
		}
		if object.Kind != "LeaderWorkerSet" {
			continue
		}
		if err := asked(object); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 1<<20), 1<<26)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		said := ""
		if refused := verdict(lines.Bytes()); refused != nil {
			said = refused.Error()
		}
		if err := answers.Encode(said); err != nil {
			panic(err)
		}
	}
}
