package forms

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq/messaging-topology-operator/api/v1beta1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestTheOperatorReadsThePlan decodes the YAML of plans into the types of the messaging topology
// operator 1.12.0. A field that the operator does not know is an error. The test also checks the
// values that the operator's resource definition limits.
func TestTheOperatorReadsThePlan(t *testing.T) {
	applyTo := applyToOf(t)
	for _, version := range []string{"3.10.8", "4.3.6"} {
		for name, plan := range plans(version) {
			text := topology.Render([]topology.Plan{plan}, topology.FormOperator)
			documents := strings.Split(text, "---\n")[1:]
			if len(documents) != len(plan.Policies) || len(documents) == 0 {
				t.Fatalf("%s, %s: %d resources of %d policies", version, name, len(documents), len(plan.Policies))
			}
			for i, document := range documents {
				var got v1beta1.Policy
				if err := yaml.UnmarshalStrict([]byte(document), &got); err != nil {
					t.Fatalf("%s, %s: %v\n%s", version, name, err, document)
				}
				if got.APIVersion != v1beta1.GroupVersion.String() || got.Kind != "Policy" {
					t.Errorf("%s, %s: it is a %s of %s", version, name, got.Kind, got.APIVersion)
				}
				if faults := validation.IsDNS1123Subdomain(got.ObjectMeta.Name); len(faults) > 0 {
					t.Errorf("%s, %s: metadata.name %q: %q", version, name, got.ObjectMeta.Name, faults)
				}
				if !slices.Contains(applyTo, got.Spec.ApplyTo) {
					t.Errorf("%s, %s: applyTo is %q, allowed are %q", version, name, got.Spec.ApplyTo, applyTo)
				}
				var definition topology.Definition
				if err := yaml.Unmarshal(got.Spec.Definition.Raw, &definition); err != nil {
					t.Fatal(err)
				}
				read := topology.Policy{
					Name: got.Spec.Name, Pattern: got.Spec.Pattern, Priority: got.Spec.Priority,
					ApplyTo: got.Spec.ApplyTo, Definition: definition,
				}
				if !read.Same(&plan.Policies[i].Policy) || got.Spec.Vhost != plan.VHost {
					t.Errorf(
						"%s, %s: the operator reads\n%+v\nplanned was\n%+v", version, name, read,
						plan.Policies[i].Policy,
					)
				}
			}
		}
	}
}

// TestTheOperatorKeepsVHostsApart plans the same queues in two vhosts and on two brokers. It checks
// that the resources have different names, because a resource replaces an earlier one of the same
// name.
func TestTheOperatorKeepsVHostsApart(t *testing.T) {
	for name, plan := range plans("4.3.6") {
		seen := map[string]bool{}
		for _, document := range strings.Split(
			topology.Render(inTwoVHosts(&plan), topology.FormOperator), "---\n",
		)[1:] {
			var got v1beta1.Policy
			if err := yaml.UnmarshalStrict([]byte(document), &got); err != nil {
				t.Fatal(err)
			}
			seen[got.ObjectMeta.Name] = true
		}
		if want := 3 * len(plan.Policies); len(seen) != want {
			t.Errorf("%s: %d different names, want %d", name, len(seen), want)
		}
	}
}

// applyToOf returns the values of spec.applyTo that the operator's resource definition allows.
func applyToOf(t *testing.T) []string {
	t.Helper()
	folder, err := exec.Command(
		"go", "list", "-m", "-f", "{{.Dir}}", "github.com/rabbitmq/messaging-topology-operator",
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config/crd/bases/rabbitmq.com_policies.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	type property struct {
		Enum       []string
		Properties map[string]property
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema property }
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	allowed := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["applyTo"].Enum
	if len(allowed) == 0 {
		t.Fatal("the resource definition limits applyTo no longer")
	}
	return allowed
}
