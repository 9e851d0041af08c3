package deadletter

import (
	"slices"
	"testing"
)

// TestTheNamesOfAField compares names with the JSON names that protobuf derives from them.
func TestTheNamesOfAField(t *testing.T) {
	t.Parallel()
	for name, json := range map[string]string{
		"order_id": "orderId", "orderId": "orderId", "_order": "Order", "order_": "order", "a__b_1c": "aB1c",
		"line_1": "line1", "to.full_name": "to.fullName", "a_.b": "a.b", "x_É": "xÉ", "": "",
	} {
		if got := JSONName(name); got != json || !SameName(name, json) || !SameName(json, name) {
			t.Errorf("%q: %q, want %q", name, got, json)
		}
	}
	for _, two := range [][2]string{
		{"order_id", "orderid"},
		{"order_id", "order_Id_x"},
		{"order-id", "orderId"},
		{"a", "b"},
		{"a_b", "ab"},
	} {
		if SameName(two[0], two[1]) {
			t.Errorf("%q is the same name", two)
		}
	}
	want := []string{"id", "orderInfo.lineId", "orderInfo.line_id", "order_info.line_id", "to.fullName", "to.full_name"}
	if got := Spellings("to.fullName", "to.full_name", "id", "orderInfo.line_id"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
