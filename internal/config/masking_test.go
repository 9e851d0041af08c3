package config_test

import "testing"

// TestNamesThatLookLikeOtherLanguages covers paths with unusual names, which must stay valid.
func TestNamesThatLookLikeOtherLanguages(t *testing.T) {
	t.Parallel()
	c, err := load(
		t, `masking: [{json: $type.a}, {json: "user[email]"}, {json: a.body.b}, {json: body}, {json: a/b}, `+
			`{field: body.a}, {field: a.0.7}, {field: "[acme.v1.x].a"}]`,
	)
	if err != nil || len(c.Masking.JSON) != 5 || len(c.Masking.Fields) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}
