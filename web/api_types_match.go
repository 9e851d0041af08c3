package web

import (
	"encoding/json"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// apiMatchTypes is POST /types/match: which types a body matches, and what it decodes to. Nothing of it is kept.
func (w *Web) apiMatchTypes(r *http.Request, in api.MatchRequest) (any, error) {
	done, err := w.turn(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	h := payload.Hints{ContentType: in.ContentType, ContentEncoding: in.ContentEncoding, Type: in.Type, Queue: in.Queue, Key: in.Key, Picked: in.As}
	decoder := w.Decoder()
	doc := decoder.Decode(in.Body, h, nil)
	ranking := doc.Ranking
	if ranking.Types == 0 { // it was not asked, as something names the type
		ranking = decoder.Match(doc.Body, h, nil)
	}
	out := api.MatchAnswer{Verdict: string(ranking.Verdict), Why: ranking.Why, Types: ranking.Types, Matches: []api.Match{}, Steps: []api.ReadStep{}, Text: doc.Text, Decoded: api.Decoded{Kind: string(doc.Kind), Type: doc.Type, Chosen: doc.Chosen, Set: doc.Set, UnknownFields: doc.UnknownFields, Problem: doc.Problem}}
	for _, m := range ranking.Matches {
		out.Matches = append(out.Matches, api.Match{Type: m.Type, Score: m.Score, Reasons: append([]string{}, m.Why...)})
	}
	for _, s := range doc.Steps {
		out.Steps = append(out.Steps, api.ReadStep(s))
	}
	if json.Valid([]byte(doc.JSON)) {
		out.Decoded.JSON = json.RawMessage(doc.JSON)
	}
	return out, nil
}
