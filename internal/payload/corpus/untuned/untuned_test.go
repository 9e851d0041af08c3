// Package untuned tests matching with types that were not used when the scores of matching were
// chosen. The bodies resemble those of real dead letters. Some are truncated, some have a type that
// is not registered, and some come from a producer that is ahead of its schema. The types come from
// Envoy, containerd and OpenFGA.
package untuned

import (
	"encoding/base64"
	"math/rand/v2"
	"os"
	"testing"

	_ "github.com/containerd/containerd/api/events"
	_ "github.com/containerd/containerd/api/runtime/task/v3"
	_ "github.com/containerd/containerd/api/services/containers/v1"
	_ "github.com/containerd/containerd/api/services/content/v1"
	_ "github.com/containerd/containerd/api/services/diff/v1"
	_ "github.com/containerd/containerd/api/services/events/v1"
	_ "github.com/containerd/containerd/api/services/images/v1"
	_ "github.com/containerd/containerd/api/services/leases/v1"
	_ "github.com/containerd/containerd/api/services/sandbox/v1"
	_ "github.com/containerd/containerd/api/services/snapshots/v1"
	_ "github.com/containerd/containerd/api/services/tasks/v1"
	_ "github.com/containerd/containerd/api/services/transfer/v1"
	_ "github.com/containerd/containerd/api/types/transfer"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/event_reporting/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/extension/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/health/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/metrics/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/network_ext_proc/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/redis_auth/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/route/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/runtime/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/secret/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/service/tap/v3"
	_ "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/payload/corpus/trial"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// These are the kinds of bodies.
const (
	whole = iota
	truncated
	unregistered
	ahead // with one field that its type does not have
	kinds
)

var kindNames = [kinds]string{"whole", "truncated", "of a type that is not registered", "with one unknown field"}

// outcome counts the results of all bodies of one kind.
type outcome struct {
	all, right, first, listed, ambiguous, unknown, text, wrong int
}

// roots returns the messages that no other message contains.
func roots(all []protoreflect.MessageDescriptor) (list []protoreflect.MessageDescriptor) {
	inner := map[protoreflect.FullName]bool{}
	for _, md := range all {
		for i := range md.Fields().Len() {
			fd := md.Fields().Get(i)
			if fd.IsMap() {
				fd = fd.MapValue()
			}
			if fd.Message() != nil {
				inner[fd.Message().FullName()] = true
			}
		}
	}
	for _, md := range all {
		if _, top := md.Parent().(protoreflect.FileDescriptor); top && !inner[md.FullName()] &&
			md.Messages().Len() == 0 {
			list = append(list, md)
		}
	}
	return list
}

// TestUntuned measures how well dlo reads bodies to which its ranking was not tuned. The bodies
// have at least 16 bytes, are raw or in base64, and come from queues without earlier letters. Their
// types have at least three fields. A body with an unknown field is also read in a queue whose
// letters have the type of the body, if that field has at most 30 % of the bytes.
func TestUntuned(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	n := 2_000
	if os.Getenv("DLO_SOAK") != "" {
		n = 20_000
	}
	linked := trial.Load(func(protoreflect.FullName) bool { return false })
	free := roots(linked.All)
	left := map[protoreflect.FullName]bool{}
	var out []protoreflect.MessageDescriptor
	for _, i := range r.Perm(len(free))[:len(free)/10] {
		left[free[i].FullName()] = true
		out = append(out, free[i])
	}
	d := &payload.Decoder{Types: trial.Load(func(name protoreflect.FullName) bool { return left[name] }).Registry}
	t.Logf("%d types, of which %d are not registered", len(linked.All), len(out))

	var by [2][kinds]outcome
	var known, named, alike int
	for i := 0; i < n; {
		kind := whole
		if i%10 < kinds-1 {
			kind = i%10 + 1
		}
		md := linked.All[r.IntN(len(linked.All))]
		for kind != unregistered && left[md.FullName()] {
			md = linked.All[r.IntN(len(linked.All))]
		}
		if kind == unregistered {
			md = out[r.IntN(len(out))]
		}
		body, err := proto.MarshalOptions{AllowPartial: true}.Marshal(payloadtest.Instance(md, r))
		if err != nil {
			t.Fatal(err)
		}
		own, added := string(md.FullName()), trial.Field(md, r)
		if len(body) < 16 || md.Fields().Len() < 3 ||
			kind == ahead && float64(len(added)) > 0.3*float64(len(body)+len(added)) {
			continue
		}
		i++
		switch kind {
		case truncated:
			body = body[:r.IntN(len(body))]
		case ahead:
			body = append(body, added...)
		}
		var kindsOf [2]payload.Kind
		for j, b := range [2][]byte{body, []byte(base64.StdEncoding.EncodeToString(body))} {
			doc := d.Decode(b, payload.Hints{}, nil)
			by[j][kind].add(doc, own)
			kindsOf[j] = doc.Kind
		}
		if kindsOf[0] == kindsOf[1] {
			alike++
		}
		if kind == ahead {
			doc := d.Decode(body, payload.Hints{Only: own, Prior: map[string]float64{own: 1}}, nil)
			known++
			if doc.Type == own {
				named++
			} else if doc.Type != "" {
				t.Errorf("%s with an unknown field, in its queue, is read as %s", own, doc.Type)
			}
		}
	}
	for j, how := range [2]string{"raw", "base64"} {
		for k := range kinds {
			o := by[j][k]
			part := func(n int) float64 { return trial.Percent(n, o.all) }
			t.Logf("%s, %s, %d: right %.1f %%, ambiguous %.1f %% (its type first %.1f %%, among eight %.1f %%), unknown %.1f %%, text %.1f %%, wrong %.1f %%",
				kindNames[k], how, o.all, part(o.right), part(o.ambiguous), part(o.first), part(o.listed),
				part(o.unknown), part(o.text), part(o.wrong))
		}
	}
	t.Logf("with one unknown field, in a queue of its type, %d: right %.1f %%", known, trial.Percent(named, known))
	t.Logf("raw and base64 are of the same kind: %.1f %%", trial.Percent(alike, n))
	for j := range by {
		for k, most := range [kinds]float64{whole: 1, truncated: 1, unregistered: 20, ahead: 10} {
			if got := trial.Percent(by[j][k].wrong, by[j][k].all); got > most {
				t.Errorf("%s: %.1f %% are read as another type", kindNames[k], got)
			}
		}
	}
	if trial.Percent(named, known) < 95 {
		t.Error("fewer than 95 % of the bodies with an unknown field are read in a queue of their type")
	}
}

func (o *outcome) add(doc *payload.Document, own string) {
	o.all++
	switch {
	case doc.Type == own:
		o.right++
	case doc.Type != "":
		o.wrong++
	case doc.Reading() == deadletter.ReadAmbiguous:
		o.ambiguous++
		for i, m := range doc.Ranking.Matches {
			if m.Type != own {
				continue
			}
			o.listed++
			if i == 0 {
				o.first++
			}
		}
	case doc.Kind == payload.Text:
		o.text++
	default:
		o.unknown++
	}
}
