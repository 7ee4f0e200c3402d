// Command gatekeeper-verdicts asks Gatekeeper's code about constraints and providers of external data.
//
// It reads a JSON list of objects a line and answers each with a line: "" where the webhook takes the enforcement action
// of every constraint and the cache takes every provider, else what they say.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/open-policy-agent/frameworks/constraint/pkg/apis/externaldata/unversioned"
	"github.com/open-policy-agent/frameworks/constraint/pkg/externaldata"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/open-policy-agent/gatekeeper/v3/pkg/util"
)

// acted is what the webhook does with the enforcement action of a constraint (pkg/webhook/policy.go validateConstraint).
func acted(object *unstructured.Unstructured) error {
	action, found, err := unstructured.NestedString(object.Object, "spec", "enforcementAction")
	if err != nil {
		return err
	}
	if !found || action == "" {
		return unread(object)
	}
	return util.ValidateEnforcementAction(util.EnforcementAction(action), object.Object)
}

// unread looks for scoped actions of a constraint that acts by another word than scoped.
func unread(object *unstructured.Unstructured) error {
	action, err := util.GetEnforcementAction(object.Object)
	if err != nil {
		return err
	}
	if _, scoped, _ := unstructured.NestedSlice(object.Object, "spec", "scopedEnforcementActions"); scoped && action != util.Scoped {
		return fmt.Errorf("the action is %s, and scoped actions are not read", action)
	}
	return nil
}

func verdict(line []byte) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(line, &raw); err != nil {
		return err
	}
	for _, each := range raw {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(each, object); err != nil {
			return err
		}
		switch object.GroupVersionKind().Group {
		case "constraints.gatekeeper.sh":
			if err := acted(object); err != nil {
				return err
			}
		case "externaldata.gatekeeper.sh":
			provider := &unversioned.Provider{}
			if err := json.Unmarshal(each, provider); err != nil {
				return err
			}
			if err := externaldata.NewCache().Upsert(provider); err != nil {
				return err
			}
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
