package failure

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// nServiceBus reads the fault headers of NServiceBus. The header FailedQ is always present. On
// transports that use machine names, its value has the form queue@machine. The stack is the
// exception with all inner exceptions, as .NET prints it. NServiceBus removes x-death, so only
// these headers show where the message failed.
func (r *reading) nServiceBus() (f deadletter.Failure, found bool) {
	const failedQ, info = "NServiceBus.FailedQ", "NServiceBus.ExceptionInfo."
	if !r.hasHeader(failedQ) && !r.hasHeader(info+"ExceptionType") && !r.hasHeader(info+"Message") {
		return f, r.nServiceBusTypes(&f) != ""
	}
	r.setError(&f, r.header(info+"ExceptionType"), r.header(info+"Message"), r.header(info+"StackTrace"))
	r.nServiceBusTypes(&f)
	f.Queue = r.place(failedQ)
	if at := strings.LastIndexByte(f.Queue, '@'); at > 0 {
		f.Queue = f.Queue[:at]
	}
	f.Attempts = cmp.Or(
		r.number("NServiceBus.DelayedRetries"), r.number("NServiceBus.Retries"), r.number("NServiceBus.FLRetries"),
	)
	f.FailedAt = timeNServiceBus(r.text("NServiceBus.TimeOfFailure"))
	f.Service, f.ID = r.label("NServiceBus.ProcessingEndpoint"), r.label("NServiceBus.MessageId")
	return f, true
}

// nServiceBusTypes sets the message type of a failure. The header EnclosedMessageTypes lists
// several types, the most specific first: "Acme.Sales.Placed, Acme.Contracts, Version=1.0.0.0, ...;
// Acme.Sales.IPlaced, ...". nServiceBusTypes takes the first one.
func (r *reading) nServiceBusTypes(f *deadletter.Failure) string {
	const enclosed = "NServiceBus.EnclosedMessageTypes"
	types, _, _ := strings.Cut(r.text(enclosed), ";")
	f.MessageType = r.unmasked(part{[]string{enclosed}, withoutAssembly(types)})
	return f.MessageType
}

// withoutAssembly removes the assembly from the name of a .NET type: "Acme.Placed, Acme.Contracts"
// becomes "Acme.Placed". For a type with parameters, it keeps the commas inside the brackets.
func withoutAssembly(name string) string {
	if i := strings.LastIndexByte(name, ']'); i >= 0 {
		rest, _, _ := strings.Cut(name[i:], ",")
		return strings.TrimSpace(name[:i] + rest)
	}
	name, _, _ = strings.Cut(name, ",")
	return strings.TrimSpace(name)
}
