package view

import "net/http"

// ErrorPage says that something did not work, and what to do now.
type ErrorPage struct {
	Shell
	Status int
	Detail string // a sentence about this case; "" = only what the status says
	Name   string // of the request, for the log; "" = none
}

// ErrorTitle is the heading of an error page.
func ErrorTitle(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "The request is wrong"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusNotFound:
		return "Nothing here"
	case http.StatusMethodNotAllowed:
		return "Not this way"
	case http.StatusConflict:
		return "Not in this state"
	case http.StatusRequestEntityTooLarge:
		return "Too large"
	case http.StatusMisdirectedRequest:
		return "Unknown host"
	case http.StatusServiceUnavailable:
		return "Not now"
	}
	return "Something broke"
}

func errorText(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "Nothing was changed."
	case http.StatusForbidden:
		return "This needs a right that you do not have, or the request came from another site. Nothing was changed."
	case http.StatusNotFound:
		return "No page and no letter has this address. Letters keep their address as long as dlo keeps them."
	case http.StatusMethodNotAllowed:
		return "This address does not take that kind of request. Nothing was changed."
	case http.StatusConflict:
		return "Meanwhile the state has changed, and does not allow it any more. Nothing was changed."
	case http.StatusRequestEntityTooLarge:
		return "The request is larger than this address takes. Nothing was changed."
	case http.StatusMisdirectedRequest:
		return "dlo does not answer to this host name. If it should, name it under hosts in the configuration."
	case http.StatusServiceUnavailable:
		return "dlo is starting, stopping, or its store has no room. Letters stay safe: what is not stored waits in RabbitMQ. Try again in a moment."
	}
	return "The mistake is ours. Letters are not touched by it: what is stored stays stored."
}
