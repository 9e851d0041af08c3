package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

// listing prints a list from the API, page by page.
type listing[T any] struct {
	path   string
	key    string // JSON key of the list in a response
	values url.Values
	limit  int  // maximum number of rows; 0 = all
	whole  bool // the response is not paged
	head   []string
	none   string // printed if the list is empty
}

const apiPage = 500

func (l listing[T]) run(p *Program, f answerFlags, row func(T) []string) error {
	if l.limit < 0 {
		return fmt.Errorf("%w: --limit is 0 or more", errUsage)
	}
	raw := []json.RawMessage{}
	next := ""
	for left := l.limit; ; {
		values := url.Values{}
		maps.Copy(values, l.values)
		if !l.whole {
			page := apiPage
			if l.limit > 0 {
				page = min(page, left)
			}
			values.Set("limit", strconv.Itoa(page))
			if next != "" {
				values.Set("after", next)
			}
		}
		var answer map[string]json.RawMessage
		if err := f.call(p, http.MethodGet, l.path+"?"+values.Encode(), nil, &answer); err != nil {
			return err
		}
		var rows []json.RawMessage
		if err := json.Unmarshal(answer[l.key], &rows); err != nil {
			return fmt.Errorf("the answer from %s cannot be read: %w", f.shown(), err)
		}
		left -= len(rows)
		if f.Output == "jsonl" { // printed page by page, because the list may be long
			if err := printLines(p.Stdout, rows); err != nil {
				return err
			}
		} else {
			raw = append(raw, rows...)
		}
		next = ""
		json.Unmarshal(answer["next"], &next) // absent in responses without pages
		if next == "" || l.limit > 0 && left <= 0 {
			break
		}
	}
	switch f.Output {
	case "jsonl":
		return nil
	case "json":
		return printJSON(p.Stdout, raw, true)
	}
	rows := make([][]string, len(raw))
	for i, r := range raw {
		var v T
		if err := json.Unmarshal(r, &v); err != nil {
			return err
		}
		rows[i] = row(v)
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.Stderr, l.none)
	}
	return table(p.Stdout, l.head, rows)
}
