package web

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// matchTypes returns the types that a body matches, and what it decodes to. Read as that of a
// letter would be; nothing of it is kept, and masked values are masked.
func (w *Web) matchTypes(ctx context.Context, r *struct{ Body api.MatchRequest }) (*reply[api.MatchAnswer], error) {
	in := &r.Body
	done, err := w.waitForPlace(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	h := payload.Hints{
		ContentType:     in.ContentType,
		ContentEncoding: in.ContentEncoding,
		Type:            in.Type,
		Queue:           in.Queue,
		Key:             in.Key,
		Picked:          in.As,
	}
	decoder := w.Decoder()
	doc := decoder.Decode(in.Body, h, nil)
	ranking := doc.Ranking
	if ranking.Types == 0 { // the request names a type, so that no types were compared
		ranking = decoder.Match(doc.Body, h, nil)
	}
	return &reply[api.MatchAnswer]{api.MatchAnswer{
		Ranking: ranking,
		Text:    doc.Text,
		Decoded: decodedOf(doc),
		Steps:   doc.Steps,
	}}, nil
}

// decodedOf converts a decoded body to the JSON form of the API.
func decodedOf(doc *payload.Document) api.Decoded {
	v := api.Decoded{
		Kind:          string(doc.Kind),
		Type:          doc.Type,
		Chosen:        doc.Chosen,
		Set:           doc.Set,
		ShapeOnly:     doc.ShapeOnly,
		UnknownFields: doc.UnknownFields,
		Problem:       cmp.Or(doc.Problem, doc.JSONProblem),
		Inside:        doc.Inside,
	}
	v.Charset, v.CharsetGuessed = doc.Charset()
	if json.Valid([]byte(doc.JSON)) {
		v.JSON = json.RawMessage(doc.JSON)
	}
	return v
}
