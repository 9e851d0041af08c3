package descriptor

import (
	"testing"
)

func FuzzCheckSource(f *testing.F) {
	f.Add("syntax = \"proto3\"; message M { /* { */ string s = 1; // {\n map<string, M> m = 2; }")
	f.Fuzz(func(t *testing.T, s string) {
		if checkSource([]byte(s)) == nil {
			importsOf([]byte(s))
		}
	})
}
