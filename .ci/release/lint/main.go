// Command lint checks the Helm chart and the compose file of a release. It renders the chart with
// its default values and with all values set, and decodes each result strictly into the types of
// Kubernetes. Without arguments, it checks the files in .ci/release. With a chart, a compose file
// and a path, it also writes the complete form of the compose file to the path, as JSON.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"helm.sh/helm/v3/pkg/chart"
	chartloader "helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	helmlint "helm.sh/helm/v3/pkg/lint/rules"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	chartPath, composePath, complete := "chart", "compose.yaml", ""
	if len(os.Args) == 4 {
		chartPath, composePath, complete = os.Args[1], os.Args[2], os.Args[3]
	}
	if err := errors.Join(checkChart(chartPath), checkCompose(composePath, complete)); err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(1)
	}
}

// everything sets each value that the default values leave empty.
const everything = `
image: {repository: registry.internal/dlo, tag: "1.2.3", pullPolicy: Always}
imagePullSecrets: [{name: registry}]
broker: {secretName: rabbit, amqpURLKey: amqp, managementURLKey: management}
tls: {secretName: certificate}
publicURL: https://letters.example.com
config:
  auth: {proxy: {from: [10.0.0.0/8], secret_file: /etc/dlo/secrets/proxy/secret}}
  grants: [{role: admin, to: [everyone]}]
secrets: [proxy, pagerduty]
storage: {size: 20Gi, storageClassName: fast, existingClaim: ""}
service: {type: LoadBalancer, port: 443}
ingress: {enabled: true, className: nginx, annotations: {a: b}, host: letters.example.com, tlsSecretName: site}
networkPolicy:
  enabled: true
  from: [{namespaceSelector: {matchLabels: {name: ingress}}}]
  monitoringFrom: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
  to: [{ports: [{port: 5671}, {port: 53, protocol: UDP}]}]
serviceMonitor: {enabled: true, interval: 15s, labels: {release: prometheus}}
resources: {limits: {memory: 2Gi, cpu: "2"}}
nodeSelector: {disk: ssd}
tolerations: [{key: dedicated, operator: Exists, effect: NoSchedule}]
affinity: {nodeAffinity: {}}
podAnnotations: {team: platform}
`

func checkChart(path string) error {
	c, err := chartloader.Load(path)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		linter := support.Linter{ChartDir: path}
		helmlint.Chartfile(&linter)
		helmlint.ValuesWithOverrides(&linter, nil)
		helmlint.TemplatesWithSkipSchemaValidation(&linter, nil, "dlo", nil, false)
		for _, m := range linter.Messages {
			if m.Severity >= support.WarningSev {
				err = errors.Join(err, fmt.Errorf("helm lint: %s", m.Error()))
			}
		}
	}
	const build = "1.2.3+4.gabc1234" // neither a label nor the tag of an image can contain a plus sign
	c.Metadata.Version, c.Metadata.AppVersion = build, build
	for name, text := range map[string]string{
		"default values": "", "all values": everything, "an existing claim": "storage: {existingClaim: old}",
		"without a policy": "networkPolicy: {enabled: false}",
	} {
		kinds, failed := render(c, text)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("chart with %s: %w", name, failed))
			continue
		}
		fmt.Printf("chart with %s: %s\n", name, strings.Join(kinds, ", "))
	}
	for _, wrong := range []string{
		"publicURL: http://plain.example.com", "replicas: 2", "config: {auth: null}", "config: {auth: {users: true}, store: x}",
	} {
		if _, failed := render(c, wrong); failed == nil {
			err = errors.Join(err, fmt.Errorf("the schema of the chart accepts %s", wrong))
		}
	}
	return err
}

// render returns the kinds of the objects that the chart creates.
func render(c *chart.Chart, text string) ([]string, error) {
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &given); err != nil {
		return nil, err
	}
	values, err := chartutil.ToRenderValues(
		c, given, chartutil.ReleaseOptions{Name: "dlo", Namespace: "letters", IsInstall: true},
		chartutil.DefaultCapabilities,
	)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, values)
	if err != nil {
		return nil, err
	}
	var kinds []string
	for _, name := range c.Templates {
		rendered := files[c.Name()+"/"+name.Name]
		if !strings.HasSuffix(name.Name, ".yaml") {
			continue
		}
		for _, document := range strings.Split(rendered, "\n---\n") {
			kind, err := decode([]byte(document))
			if strings.Contains(document, c.Metadata.Version) {
				err = errors.Join(err, errors.New("there is a plus sign"))
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name.Name, err, document)
			}
			if kind != "" {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}

// serviceMonitor has the fields of the Prometheus operator's type that the chart uses.
type serviceMonitor struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   map[string]any   `json:"metadata"`
	Spec       serviceMonitorOf `json:"spec"`
}

type serviceMonitorOf struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	Endpoints []struct {
		Port     string `json:"port"`
		Interval string `json:"interval"`
	} `json:"endpoints"`
}

// decode decodes one object. An unknown field and a field that is twice there are errors.
func decode(document []byte) (kind string, err error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil || head.Kind == "" {
		return "", err
	}
	into := map[string]any{
		"ConfigMap":             &corev1.ConfigMap{},
		"Service":               &corev1.Service{},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{},
		"StatefulSet":           &appsv1.StatefulSet{},
		"Ingress":               &networkingv1.Ingress{},
		"NetworkPolicy":         &networkingv1.NetworkPolicy{},
		"ServiceMonitor":        &serviceMonitor{},
	}[head.Kind]
	if into == nil {
		return "", fmt.Errorf("the kind %s is unknown here", head.Kind)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		return "", err
	}
	if s, ok := into.(*appsv1.StatefulSet); ok {
		return head.Kind, restricted(s)
	}
	return head.Kind, nil
}

// restricted checks what the Pod Security Standard "restricted" asks for, and the single replica.
func restricted(s *appsv1.StatefulSet) error {
	pod, c := s.Spec.Template.Spec, s.Spec.Template.Spec.Containers[0].SecurityContext
	switch {
	case s.Spec.Replicas == nil || *s.Spec.Replicas != 1:
		return errors.New("there has to be one replica")
	case pod.SecurityContext.RunAsNonRoot == nil || !*pod.SecurityContext.RunAsNonRoot,
		pod.SecurityContext.SeccompProfile == nil || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault",
		c.AllowPrivilegeEscalation == nil || *c.AllowPrivilegeEscalation,
		c.ReadOnlyRootFilesystem == nil || !*c.ReadOnlyRootFilesystem,
		len(c.Capabilities.Drop) != 1 || c.Capabilities.Drop[0] != "ALL":
		return errors.New("the pod is not restricted")
	}
	return nil
}

func checkCompose(path, complete string) error {
	project, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  ".",
		ConfigFiles: []types.ConfigFile{{Filename: path}},
		Environment: types.Mapping{},
	})
	if err != nil {
		return fmt.Errorf("compose: %w", err)
	}
	fmt.Printf("compose: %s\n", strings.Join(project.ServiceNames(), ", "))
	if complete == "" {
		return nil
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	return os.WriteFile(complete, text, 0o644)
}
