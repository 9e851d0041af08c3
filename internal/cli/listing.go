package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/api"
)

// listing is a list of the API that a command prints. It is read page by page.
type listing[T any] struct {
	path   string
	key    string // JSON key of the list in the response
	values url.Values
	limit  int  // maximum number of rows; 0 means no limit
	whole  bool // true if the API returns the whole list in one response, without pages
	head   []string
	none   string // text to print if the list is empty
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
		if err := api.Unmarshal(answer[l.key], &rows); err != nil {
			return fmt.Errorf("the answer from %s cannot be read: %w", f.displayAddress(), err)
		}
		left -= len(rows)
		if f.Output == "jsonl" { // each page at once, because the list may be long
			if err := printLines(p.Stdout, rows); err != nil {
				return err
			}
		} else {
			raw = append(raw, rows...)
		}
		next = ""
		api.Unmarshal(answer["next"], &next) // a response without pages has no "next"
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
		if err := api.Unmarshal(r, &v); err != nil {
			return err
		}
		rows[i] = row(v)
	}
	if len(rows) == 0 {
		fmt.Fprintln(p.Stderr, l.none)
	}
	return printTable(p.Stdout, l.head, rows)
}
