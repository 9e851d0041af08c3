package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// explain describes an error of a connection. Unlike the errors of net/http, the description
// contains no addresses, paths or responses.
func explain(err error) error {
	var (
		r       refusal
		g       guardError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		record  tls.RecordHeaderError
		alert   tls.AlertError
		timeout net.Error
		op      *net.OpError
	)
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &g):
		return g
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Errorf("there is no host %s", line(dns.Name, 100))
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(
		err, context.DeadlineExceeded,
	), errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no answer in time")
	case errors.As(err, &dns):
		return fmt.Errorf("the host %s cannot be looked up", line(dns.Name, 100))
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the connection was refused")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return errors.New("there is no network route to the receiver")
	case errors.As(err, &unknown):
		return errors.New("the certificate of the receiver is signed by an unknown authority")
	case errors.As(err, &cert):
		return errors.New("the certificate of the receiver is not valid for it")
	case errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return errors.New("TLS with the receiver failed")
	case errors.Is(err, io.EOF), errors.Is(
		err, io.ErrUnexpectedEOF,
	), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errors.New("the connection was cut")
	case errors.As(err, &op):
		return errors.New("the connection failed")
	}
	return errors.New("the request failed")
}
