package classify

import "github.com/deadletteroffice/dlo/internal/deadletter"

// unwrap turns an EasyNetQ error letter into one that its consumer can read. The message inside the
// error becomes a revision, and dlo sends it instead of the envelope. If the error contains no
// message that can be used, the result "problem" says why. In that case, only a person can send the
// letter, after an edit.
func unwrap(l *deadletter.Letter, v *deadletter.Classified) (problem string) {
	if l.Revised != nil || l.Damage != "" || l.Undecodable() || !deadletter.EasyNetQError(l.Properties) {
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
