package classify

import "github.com/deadletteroffice/dlo/internal/deadletter"

// unwrap makes of a letter that is an error of EasyNetQ what its consumer can read: the message in
// it, as a revision, which is sent instead of the envelope. why says why there is none: then only
// people can send it, once they have edited it.
func unwrap(l *deadletter.Letter, v *deadletter.Classified) (why string) {
	if l.Revised != nil || l.Undecodable() || !deadletter.EasyNetQError(l.Properties) {
		return ""
	}
	properties, body, err := deadletter.UnwrapEasyNetQ(l.Body)
	if err != nil {
		return "unpublishable: " + err.Error()
	}
	properties, _ = deadletter.Sanitise(properties)
	v.Unwrapped = &deadletter.Revision{
		Letter: l.ID, Number: l.Revision + 1, Properties: properties, Body: body,
		Changes: "the message in the error of EasyNetQ", By: deadletter.Service.Name,
	}
	l.Revised, l.Revision = v.Unwrapped, v.Unwrapped.Number
	return ""
}
