package classify

import "github.com/deadletteroffice/dlo/internal/deadletter"

// unwrap turns an EasyNetQ error letter into one that its consumer can read. The message inside the
// error becomes a revision and is sent instead of the envelope. If the error contains no usable
// message, why gives the reason. Only people can then send the letter, after they edit it.
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
