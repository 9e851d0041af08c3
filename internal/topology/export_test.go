package topology

import "github.com/deadletteroffice/dlo/internal/deadletter"

// SeverityOf returns the usual severity of a kind.
func SeverityOf(k Kind) deadletter.Severity { return severities[k] }
