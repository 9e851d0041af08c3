package forms

import (
	"context"
	"encoding/json"
	"net/url"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"
	"github.com/hashicorp/terraform-plugin-sdk/v2/terraform"
	"github.com/terraform-providers/terraform-provider-rabbitmq/rabbitmq"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestTheTerraformProviderSetsThePlan reads the HCL of plans, sets each policy with the code of the
// provider cyrilgdn/rabbitmq 1.8.0, and reads the policy back from the broker. The policy must be
// the planned one. The provider must see no difference either, because otherwise it would change
// the policy at the next run.
func TestTheTerraformProviderSetsThePlan(t *testing.T) {
	node := testenv.Broker(t)
	provider := rabbitmq.Provider()
	if faults := provider.Configure(context.Background(), terraform.NewResourceConfigRaw(map[string]any{
		"endpoint": node.ManagementURL(), "username": "guest", "password": "guest",
	})); faults.HasError() {
		t.Fatal(faults)
	}
	resource := provider.ResourcesMap["rabbitmq_policy"]
	for name, plan := range plans(node.Version()) {
		t.Run(name, func(t *testing.T) {
			plan.VHost, _ = node.VHost(t)
			blocks := resources(t, topology.Render([]topology.Plan{plan}, topology.FormTerraform))
			if len(blocks) != len(plan.Policies) || len(blocks) == 0 {
				t.Fatalf("%d resources of %d policies; refused: %v", len(blocks), len(plan.Policies), plan.Refused)
			}
			for i, raw := range blocks {
				if faults := resource.Validate(terraform.NewResourceConfigRaw(raw)); faults.HasError() {
					t.Fatal(faults)
				}
				d := schema.TestResourceDataRaw(t, resource.Schema, raw)
				if err := resource.Create(d, provider.Meta()); err != nil {
					t.Fatal(err)
				}
				want := plan.Policies[i].Policy
				var got topology.Policy
				if err := node.API(
					"GET", "/api/policies/"+url.PathEscape(plan.VHost)+"/"+url.PathEscape(want.Name), nil, &got,
				); err != nil {
					t.Fatal(err)
				}
				if !got.Same(&want) {
					t.Errorf("the broker has\n%+v\nplanned was\n%+v", got, want)
				}
				again, err := resource.Diff(
					context.Background(), d.State(), terraform.NewResourceConfigRaw(raw), provider.Meta(),
				)
				if err != nil || !again.Empty() {
					t.Errorf("the provider would change %v %v", again, err)
				}
			}
		})
	}
}

// TestTerraformKeepsVHostsApart plans the same queues in two vhosts and on two brokers. It checks
// that the resources have different labels, because Terraform refuses a label that occurs twice.
func TestTerraformKeepsVHostsApart(t *testing.T) {
	for name, plan := range plans("4.3.6") {
		file, faults := hclsyntax.ParseConfig(
			[]byte(topology.Render(inTwoVHosts(&plan), topology.FormTerraform)), "plan.tf", hcl.InitialPos,
		)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		seen := map[string]bool{}
		for _, block := range file.Body.(*hclsyntax.Body).Blocks {
			seen[block.Labels[1]] = true
		}
		if want := 3 * len(plan.Policies); len(seen) != want {
			t.Errorf("%s: %d different labels, want %d", name, len(seen), want)
		}
	}
}

// resources returns the rabbitmq_policy resources of an HCL file, with the values that Terraform
// passes to the provider.
func resources(t *testing.T, text string) []map[string]any {
	t.Helper()
	file, faults := hclsyntax.ParseConfig([]byte(text), "plan.tf", hcl.InitialPos)
	if faults.HasErrors() {
		t.Fatalf("%v\n%s", faults, text)
	}
	var list []map[string]any
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		if block.Type != "resource" || len(block.Labels) != 2 || block.Labels[0] != "rabbitmq_policy" ||
			!hclsyntax.ValidIdentifier(block.Labels[1]) {
			t.Fatalf("%s %q", block.Type, block.Labels)
		}
		list = append(list, values(t, block.Body))
	}
	return list
}

// values returns the values of the attributes of an HCL block. A nested block becomes a list with
// one element.
func values(t *testing.T, body *hclsyntax.Body) map[string]any {
	t.Helper()
	all := map[string]any{}
	for name, attribute := range body.Attributes {
		value, faults := attribute.Expr.Value(nil)
		if faults.HasErrors() {
			t.Fatal(faults)
		}
		text, err := ctyjson.Marshal(value, cty.DynamicPseudoType)
		if err != nil {
			t.Fatal(err)
		}
		var typed struct{ Value any }
		if err := json.Unmarshal(text, &typed); err != nil {
			t.Fatal(err)
		}
		all[name] = typed.Value
	}
	for _, inner := range body.Blocks {
		all[inner.Type] = []any{values(t, inner.Body)}
	}
	return all
}
