package server

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
)

// certificate is the TLS certificate of the server. If one of its files changes, it is read again,
// so that a renewal needs no restart.
type certificate struct {
	files config.TLS

	mu      sync.Mutex
	current *tls.Certificate
	changed [2]time.Time // modification times of the files from which the current certificate was read
	looked  time.Time
}

// certificateLook is the minimum time between two checks whether the files of the certificate have
// changed.
const certificateLook = time.Second

// readCertificate reads the certificate for the first time. Its error names the file with the
// fault.
func readCertificate(files config.TLS) (*certificate, error) {
	c := &certificate{files: files}
	changed, err := c.changeTimes()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: %s and %s: %w", files.Cert, files.Key, err)
	}
	c.current, c.changed = &pair, changed
	return c, nil
}

// changeTimes returns when the file of the certificate and the file of the key were last changed.
func (c *certificate) changeTimes() (changed [2]time.Time, err error) {
	for i, name := range []string{c.files.Cert, c.files.Key} {
		info, err := os.Stat(name)
		if err != nil {
			return changed, err
		}
		changed[i] = info.ModTime()
	}
	return changed, nil
}

// get returns the certificate for a connection. If the files have changed and cannot be used, the
// previous certificate stays in use. This happens, for example, when a renewal has written only one
// of the two files.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.looked).Abs() > certificateLook {
		c.looked = now
		if changed, err := c.changeTimes(); err == nil && changed != c.changed {
			if pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key); err == nil {
				c.current, c.changed = &pair, changed
			}
		}
	}
	return c.current, nil
}

// listener returns a TLS listener. It accepts TLS 1.2 or later, with HTTP/2 and HTTP/1.1.
func (c *certificate) listener(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		GetCertificate: c.get,
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
	})
}

// schemeOf returns the scheme with which the URL of the server begins, for example "https://".
func schemeOf(cfg config.Config) string {
	if cfg.TLS.Cert != "" {
		return "https://"
	}
	return "http://"
}
