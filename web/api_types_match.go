package web

import (
	"encoding/json"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/payload"
)

type apiMatch struct {
	Type    string   `json:"type"`
	Score   float64  `json:"score"`
	Reasons []string `json:"reasons"`
}

type apiReadStep struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// apiMatchTypes is POST /types/match: which types a body matches, and what it decodes to. Nothing of it is kept.
func (w *Web) apiMatchTypes(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	var in struct {
		Body            []byte `json:"body"`
		ContentType     string `json:"content_type"`
		ContentEncoding string `json:"content_encoding"`
		Type            string `json:"type"`
		Queue           string `json:"queue"`
		Key             string `json:"key"`
		As              string `json:"as"`
	}
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
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
	out := struct {
		Verdict payload.Verdict `json:"verdict"`
		Why     string          `json:"why"`
		Types   int             `json:"types"`
		Matches []apiMatch      `json:"matches"`
		Steps   []apiReadStep   `json:"steps"`
		Text    string          `json:"text"`
		Decoded apiDecoded      `json:"decoded"`
	}{ranking.Verdict, ranking.Why, ranking.Types, []apiMatch{}, []apiReadStep{}, doc.Text, apiDecoded{Kind: string(doc.Kind), Type: doc.Type, Chosen: doc.Chosen, Set: doc.Set, UnknownFields: doc.UnknownFields, Problem: doc.Problem}}
	for _, m := range ranking.Matches {
		out.Matches = append(out.Matches, apiMatch{m.Type, m.Score, append([]string{}, m.Why...)})
	}
	for _, s := range doc.Steps {
		out.Steps = append(out.Steps, apiReadStep(s))
	}
	if json.Valid([]byte(doc.JSON)) {
		out.Decoded.JSON = json.RawMessage(doc.JSON)
	}
	return out, nil
}
