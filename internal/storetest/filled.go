package storetest

import (
	"reflect"
	"time"
)

// Filled returns a value with all fields set: a text is its field's name, a number is 1, and a time
// is in 2026. Maps, interfaces and pointers stay empty.
func Filled[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), "")
	return v
}

func fill(v reflect.Value, name string) {
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		*at = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Array:
		fill(v.Index(0), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Struct:
		for field, part := range v.Fields() {
			fill(part, field.Name)
		}
	}
}
