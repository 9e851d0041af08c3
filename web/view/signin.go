package view

import (
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SignInPage is the content of the pages for people who have not signed in.
type SignInPage struct {
	Name  string
	Next  string // the path to which the person wanted to go
	Code  string // the code of an invitation; "" if the invitation is not valid
	Error string
}

// maxNext is the maximum number of bytes of the path to which a person wanted to go.
const maxNext = 2000

// returnPath returns the path to which the person wanted to go. It returns "/" if the path is not
// local, too long, or has invisible characters.
func (p SignInPage) returnPath() string {
	if !strings.HasPrefix(p.Next, "/") || len(p.Next) > maxNext || deadletter.Visible(p.Next) != p.Next {
		return "/"
	}
	return p.Next
}

// refusedAttributes returns the HTML attributes that mark the fields of a form that was refused.
func refusedAttributes(text string) templ.Attributes {
	if text == "" {
		return nil
	}
	return templ.Attributes{"aria-invalid": "true", "aria-describedby": "signin-error"}
}
