//go:build generated

// Command golang calls a running dlo with the generated client. Usage: golang URL.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/deadletteroffice/dlo/web/clients/golang/client"
)

func main() {
	if err := call(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// call makes three kinds of calls: it reads, it saves a view, and it requests a letter that does
// not exist.
func call(ctx context.Context, url string) error {
	c, err := client.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	added, err := c.AddViewWithResponse(ctx, client.AddViewJSONRequestBody{Name: "overnight", Query: "state:dead"})
	if err != nil || added.JSON201 == nil {
		return fmt.Errorf("add a view: %s, %w", added.Body, err)
	}
	views, err := c.ListViewsWithResponse(ctx)
	if err != nil || views.JSON200 == nil || len(views.JSON200.Views) != 1 ||
		views.JSON200.Views[0].Query != "state:dead" {
		return fmt.Errorf("views: %s, %w", views.Body, err)
	}
	if at := views.JSON200.Views[0].At; at.IsZero() {
		return fmt.Errorf("a view of time %v", at)
	}
	query := "state:dead"
	letters, err := c.ListLettersWithResponse(ctx, &client.ListLettersParams{Q: &query})
	if err != nil || letters.JSON200 == nil || len(letters.JSON200.Letters) != 0 {
		return fmt.Errorf("letters: %s, %w", letters.Body, err)
	}
	missing, err := c.GetLetterWithResponse(ctx, "01a1f82e-3420-7001-8000-000000000001", &client.GetLetterParams{})
	if err != nil || missing.ApplicationproblemJSON4XX == nil || missing.ApplicationproblemJSON4XX.Detail == nil {
		return fmt.Errorf("a missing letter: %s, %w", missing.Body, err)
	}
	return nil
}
