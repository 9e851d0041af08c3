package cli

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// columns describes a table, or the facts about one object. Each word is a column: the name of a
// member of the JSON, or HEAD=member, or HEAD=member|text with a text of texts.tmpl. A member of a
// member has a dot, and without a name, the text gets the whole object. In a head and in the name
// of a text, _ stands for a space.
type columns string

// column is a column of a table, or a line of facts.
type column struct{ head, member, text string }

// list returns the columns. CSV has times in place of ages.
func (f answerFlags) list(c columns) (list []column) {
	for _, word := range strings.Fields(string(c)) {
		head, rest, named := strings.Cut(word, "=")
		member, text, _ := strings.Cut(cmp.Or(rest, word), "|")
		if !named {
			head = member
		}
		if text == "age" && f.Output == "csv" {
			text = ""
		}
		list = append(list, column{strings.ReplaceAll(head, "_", " "), member, strings.ReplaceAll(text, "_", " ")})
	}
	return list
}

// memberOf returns the member of a value that has this name in JSON. It is not valid if there is
// none.
func memberOf(v reflect.Value, path string) reflect.Value {
	if path == "" {
		return v
	}
	name, rest, _ := strings.Cut(path, ".")
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map:
		return memberOf(v.MapIndex(reflect.ValueOf(name)), rest)
	case reflect.Struct:
		var index []int
		for _, f := range reflect.VisibleFields(v.Type()) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == name && (index == nil || len(f.Index) < len(index)) {
				index = f.Index
			}
		}
		if index != nil {
			return memberOf(v.FieldByIndex(index), rest)
		}
	}
	return reflect.Value{}
}

// shown returns a value as the text of a column shows it.
func (c column) shown(v reflect.Value) string {
	if c.text != "" && v.IsValid() {
		if text, err := textOf(c.text, v.Interface()); err == nil {
			return text
		}
	}
	return plain(v)
}

// plain returns a value as text: texts without quotes, lists with commas, yes and no.
func plain(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	raw, _ := api.Marshal(v.Interface()) // it was JSON before
	return plainJSON(raw)
}

func plainJSON(raw json.RawMessage) string {
	var list []json.RawMessage
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case string(raw) == "true":
		return "yes"
	case string(raw) == "false":
		return "no"
	case raw[0] == '[' && api.Unmarshal(raw, &list) == nil:
		parts := make([]string, len(list))
		for i, one := range list {
			parts[i] = plainJSON(one)
		}
		return strings.Join(parts, ", ")
	case raw[0] == '"' && api.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

// facts returns a row for each fact: its name and its value. A list has a row for each of its
// values. Facts without a value are left out.
func (f answerFlags) facts(c columns, v reflect.Value) (rows [][]string) {
	for _, one := range f.list(c) {
		member := memberOf(v, one.member)
		values := []reflect.Value{member}
		if one.member != "" && member.Kind() == reflect.Slice && member.Type().Elem().Kind() != reflect.Uint8 {
			values = nil
			for i := range member.Len() {
				values = append(values, member.Index(i))
			}
		}
		for _, value := range values {
			if text := one.shown(value); text != "" {
				rows = append(rows, []string{one.head, text})
			}
		}
	}
	return rows
}

// printTable prints a header and rows, as CSV if --output asks for it. It makes each cell safe for
// a terminal, because a letter may contain control characters. In CSV, an apostrophe precedes a
// cell that a spreadsheet would take for a formula, as in the exports of the server.
func (f answerFlags) printTable(out io.Writer, head []string, rows [][]string) error {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = deadletter.Visible(cell)
			if f.Output == "csv" && cell != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", []rune(cell)[0]) {
				row[i] = "'" + row[i]
			}
		}
	}
	rows = append([][]string{head}, rows...)
	if f.Output == "csv" {
		return csv.NewWriter(out).WriteAll(rows)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		io.WriteString(w, strings.Join(row, "\t")+"\n")
	}
	return w.Flush()
}
