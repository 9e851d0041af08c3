package system

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/crypto/bcrypt"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// proxied is a dlo behind a proxy that is configured as in docs/examples/proxies.
type proxied struct {
	t      *testing.T
	dlo    *serving
	port   int
	client *http.Client
	base   string // the path below which dlo is served; "" = at the root
	// adds to a request what a browser sends after the person with the name "who" has signed in
	sign func(r *http.Request, who string)

	// enter opens an address in a browser. It signs in there as the person with the name "who".
	enter func(tab *testenv.Tab, address, who string)

	groupless bool // true if the proxy does not send groups
}

// elsewhere is the address from which people and programs connect to the proxy. It differs from the
// address from which the proxy connects to dlo.
const elsewhere = "127.0.0.2"

// proxyConfig is the configuration that docs/security.md shows for a proxy.
const proxyConfig = `
public_url: https://dlo.example.com
auth: {tokens: true, proxy: {from: [127.0.0.1], user: X-Forwarded-User, email: X-Forwarded-Email, groups: X-Forwarded-Groups, secret_file: %s}}
grants:
  - {role: reader, to: [everyone]}
  - {role: operator, to: ["group:payments", "user:ana"]}
  - {role: admin, without_step_up: true, to: ["user:root@example.com"]}
`

// writeCertificate writes a certificate for dlo.example.com and its key to files. It returns the
// paths of both files, and a pool that trusts the certificate.
func writeCertificate(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "dlo.example.com"},
		DNSNames:              []string{"dlo.example.com"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "dlo.crt"), filepath.Join(dir, "dlo.key")
	writeFile(t, certificate, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return certificate, key, pool
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// authService starts a service that takes the place of oauth2-proxy, and returns its port. A cookie
// contains the name of the person who has signed in. Groups follow the name after a slash. Without
// a slash, the service sends no header for groups.
func authService(t *testing.T) (port string) {
	t.Helper()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cookie, err := r.Cookie("who")
		if r.URL.Path != "/oauth2/auth" || err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		user, groups, grouped := strings.Cut(cookie.Value, "/")
		w.Header().Set("X-Auth-Request-User", user)
		if grouped {
			w.Header().Set("X-Auth-Request-Groups", groups)
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(service.Close)
	u, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// tryProxy checks dlo behind a proxy, at the root and below a path. It sends the requests of a
// program and requests with forged headers. It also uses a real browser.
func tryProxy(t *testing.T, file string, start func(p *proxied, text, dir string)) {
	t.Helper()
	t.Parallel()
	for _, base := range []string{"", "/dlo"} {
		p := serveBelow(t, base, file, start)
		p.check()
		p.checkPages()
		t.Run("browser"+base, p.checkBrowser)
	}
}

// serveBelow starts dlo and a proxy in front of it. The parameter "base" is the path below which
// dlo is served, or "" for the root. The proxy uses a file of docs/examples/proxies, in which
// names, ports and files are replaced.
func serveBelow(t *testing.T, base, file string, start func(p *proxied, text, dir string)) *proxied {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	writeFile(t, secret, "change-me\n")
	config := away + fmt.Sprintf(proxyConfig, secret)
	if base != "" {
		config = strings.Replace(config, "https://dlo.example.com", "https://dlo.example.com"+base, 1) + "base_path: " +
			base + "\n"
	}
	p := &proxied{t: t, dlo: serve(t, "", config, nil), port: testenv.FreePort(t), base: base}
	certificate, key, pool := writeCertificate(t)
	p.client = &http.Client{
		Timeout:       20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "dlo.example.com"},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{
					LocalAddr: &net.TCPAddr{IP: net.ParseIP(elsewhere)},
				}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", p.port))
			},
		},
	}
	p.sign = func(r *http.Request, who string) { r.AddCookie(&http.Cookie{Name: "who", Value: who}) }
	p.enter = func(tab *testenv.Tab, address, who string) {
		tab.Cookie("dlo.example.com", "who", who)
		tab.Open(address)
	}
	text, err := os.ReadFile("../../docs/examples/proxies/" + file)
	if err != nil {
		t.Fatal(err)
	}
	replaced := strings.NewReplacer(
		"127.0.0.1:8672", strings.TrimPrefix(p.dlo.url, "http://"), "127.0.0.1:4180", "127.0.0.1:"+authService(t),
		"/etc/nginx/dlo.crt", certificate, "/etc/nginx/dlo.key", key, "/etc/apache2/dlo.crt", certificate,
		"/etc/apache2/dlo.key", key,
		"listen 443 ssl", fmt.Sprintf("listen 127.0.0.1:%d ssl", p.port), "*:443", fmt.Sprintf("127.0.0.1:%d", p.port),
		"dlo.example.com {", fmt.Sprintf("https://dlo.example.com:%d {\n\ttls %s %s", p.port, certificate, key), "api/",
		strings.TrimPrefix(base+"/api/", "/"),
	).Replace(string(text))
	start(p, replaced, t.TempDir())
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, _, err := p.try("GET", "/static/none", ""); err == nil {
			return p
		} else if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// try sends a request through the proxy. If "person" is not "", the request comes from a signed-in
// person with this name. The list "headers" alternates between names and values.
func (p *proxied) try(method, path, person string, headers ...string) (*http.Response, string, error) {
	p.t.Helper()
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader("name=mine&query=state%3Adead")
	}
	r, err := http.NewRequestWithContext(p.t.Context(), method, "https://dlo.example.com"+p.base+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if person != "" {
		p.sign(r, person)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	answer, err := p.client.Do(r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	if strings.HasSuffix(path, "/events") && answer.StatusCode == http.StatusOK {
		line, err := bufio.NewReader(answer.Body).ReadString('\n')
		return answer, line, err
	}
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

// want sends a request through the proxy. It checks the status of the response, and that the
// response contains the given parts.
func (p *proxied) want(code int, method, path, person string, headers []string, parts ...string) {
	p.t.Helper()
	answer, text, err := p.try(method, path, person, headers...)
	if err != nil {
		p.t.Fatal(err)
	}
	if answer.StatusCode != code {
		p.t.Errorf(
			"%s %s of %q with %q: %d, want %d: %.400s", method, path, person, headers, answer.StatusCode, code, text,
		)
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			p.t.Errorf("%s %s of %q: %q is missing in %.400s", method, path, person, part, text)
		}
	}
}

// checkPages checks that all links of a page lead to paths below the base path of dlo.
func (p *proxied) checkPages() {
	p.t.Helper()
	answer, text, err := p.try("GET", "/letters", "ana/")
	for hops := 0; err == nil && answer.StatusCode == http.StatusSeeOther && hops < 3; hops++ {
		to := strings.TrimPrefix(answer.Header.Get("Location"), p.base)
		answer, text, err = p.try("GET", to, "ana/")
	}
	if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(text, `href="`+p.base+`/triage"`) {
		p.t.Errorf("%v %.300s", err, text)
	}
	for _, m := range regexp.MustCompile(` (?:href|src|action)="(/[^"]*)"`).FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[1], p.base+"/") {
			p.t.Errorf("a page leads to %s", m[1])
		}
	}
}

// check sends requests through the proxy, as people, as programs, and as people who forge headers.
func (p *proxied) check() {
	p.t.Helper()
	secret, err := tokenIn(p)
	if err != nil {
		p.t.Fatal(err)
	}
	p.want(200, "GET", "/queues", "ana/", nil, "<nav")
	p.want(200, "GET", "/events", "ana/", nil)
	p.want(
		403, "POST", "/views", "bob/", []string{"Origin", "https://dlo.example.com"},
		"bob may not change saved views; that needs the role operator",
	)
	lies := []string{
		"X-Forwarded-User", "root@example.com", "X-Forwarded-Email", "root@example.com", "X-Forwarded-Groups",
		"payments", "X-Dlo-Proxy-Secret", "change-me", "Origin", "https://dlo.example.com",
	}
	p.want(403, "POST", "/views", "bob/", lies, "bob may not")
	p.want(403, "POST", "/views", "eve", lies, "eve may not") // the service sends no groups for eve
	p.want(403, "POST", "/views", "ana/", []string{"Origin", "https://evil.example"})
	p.want(303, "POST", "/views", "ana/", []string{"Origin", "https://dlo.example.com"})
	if !p.groupless {
		p.want(
			403, "POST", "/views", "joe/others", []string{"Origin", "https://dlo.example.com"},
			"joe may not change saved views",
		)
		p.want(200, "GET", "/account", "eve/payments,others", nil, "eve", "operator")
	}
	if answer, text, err := p.try("GET", "/letters", "", lies...); err != nil || answer.StatusCode == 200 {
		p.t.Errorf("lies let a stranger in: %v %.200s", err, text)
	}

	p.want(401, "GET", "/api/v1/letters", "", nil, "send a token")
	p.want(401, "GET", "/api/v1/letters", "", lies)
	p.want(401, "GET", "/api/v1/letters", "ana/", nil)
	p.want(200, "GET", "/api/v1/me", "", []string{"Authorization", "Bearer " + secret}, `"name":"token:ci"`)
	p.want(
		200, "GET", "/api/v1/me", "", append([]string{"Authorization", "Bearer " + secret}, lies...),
		`"name":"token:ci"`,
	)
	p.want(401, "GET", "/api/v1/me", "", []string{"Authorization", "Bearer dlo_wrong"}, "the token is not valid")
	p.want(200, "GET", "/api/v1/events", "", []string{"Authorization", "Bearer " + secret})

	// A request that does not come through the proxy needs the secret.
	r, err := http.NewRequest("GET", p.dlo.url+"/letters", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-User", "root@example.com")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusUnauthorized {
		p.t.Errorf("dlo believes headers without the secret: %d", answer.StatusCode)
	}
	_, text, err := p.try("GET", "/api/v1/audit", "", "Authorization", "Bearer "+secret)
	for _, act := range [][]any{
		{"view saved", "ana", "page"},
		{"denied", "bob", "page"},
		{"token at new address", "token:ci", "api"},
	} {
		part := fmt.Sprintf(`"kind":%q,"actor":%q,"through":%q,"address":%q`, append(act, elsewhere)...)
		if err != nil || !strings.Contains(text, part) {
			p.t.Errorf("%v; %s is missing in %s", err, part, text)
		}
	}
}

// tokenIn adds a token to the store of the running dlo and returns its secret.
func tokenIn(p *proxied) (string, error) {
	text, err := p.asRoot("/api/v1/tokens", "application/json", `{"name":"ci","role":"operator"}`)
	_, rest, ok := strings.Cut(text, `"secret":"`)
	if err != nil || !ok {
		return "", fmt.Errorf("%w %s", err, text)
	}
	secret, _, _ := strings.Cut(rest, `"`)
	return secret, nil
}

// asRoot sends a POST request to dlo without the proxy. The request comes from an admin whom the
// configuration names. asRoot returns the response.
func (p *proxied) asRoot(path, kind, body string) (string, error) {
	r, err := http.NewRequest("POST", p.dlo.url+p.base+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Forwarded-User", "root@example.com")
	r.Header.Set("X-Dlo-Proxy-Secret", "change-me")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// checkBrowser uses dlo through the proxy with a real browser and TLS. It checks the identity of
// the person, a form, and the stream of events. A letter that arrives must appear on an open page.
func (p *proxied) checkBrowser(t *testing.T) {
	receive := func(number int) {
		t.Helper()
		if text, err := p.asRoot(
			"/api/v1/letters/import", "application/x-ndjson", exportLine(number, "sms", 9-number),
		); err != nil || !strings.Contains(text, `"imported":1`) {
			t.Fatal(err, text)
		}
	}
	tab := testenv.Browser(t)
	tab.TrustAll()
	sees := func(expression string) {
		t.Helper()
		for until := time.Now().Add(20 * time.Second); !tab.Is(expression); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf(
					"%s: %s", expression,
					testenv.Run(tab, chromedp.Evaluate[string]("location + ' ' + document.body.innerText")),
				)
			}
		}
	}
	at := fmt.Sprintf("https://dlo.example.com:%d%s", p.port, p.base)
	p.enter(tab, at+"/account", "ana/payments")
	sees(`document.body.innerText.includes('operator') && document.querySelector('h1').textContent === 'ana'`)
	sees(
		`location.protocol === 'https:' && location.pathname === '` + p.base +
			`/account' && [...document.styleSheets].some(s => s.cssRules.length > 0)`,
	)
	receive(1)
	tab.Open(at + "/letters?q=queue%3Asms")
	sees(
		`document.querySelector('[data-live-word]').textContent === 'Live updates, broker away' && document.querySelectorAll('input[data-pick]').length === 1`,
	)
	receive(2)
	sees(`document.querySelector('[data-fresh]').innerText === '1 new, show'`)
	tab.Act(`document.querySelector('[data-fresh] a').click()`)
	sees(`document.querySelectorAll('input[data-pick]').length === 2`)
	tab.Act(`document.querySelector('[data-theme-form] button').click()`)
	sees(`document.documentElement.dataset.theme !== undefined`)
	sees(`document.cookie.indexOf('theme') < 0`) // the cookie is HttpOnly, so scripts cannot read it
	if broken := append(tab.Console(), tab.CSPReports()...); len(broken) > 0 {
		t.Errorf("%q", broken)
	}
}

func TestBehindNginx(t *testing.T) {
	tryProxy(t, "nginx.conf", startNginx)
}

func startNginx(p *proxied, text, dir string) {
	main := filepath.Join(dir, "nginx.conf")
	temporary := ""
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		temporary += fmt.Sprintf("%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	writeFile(
		p.t, main,
		fmt.Sprintf(
			"daemon off;\npid %s/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n%s%s}\n", dir, temporary,
			text,
		),
	)
	testenv.Daemon(p.t, "nginx", "nginx-light", "-p", dir, "-e", "stderr", "-c", main)
}

func TestBehindCaddy(t *testing.T) {
	testenv.Full(t)
	tryProxy(t, "Caddyfile", startCaddy)
}

func startCaddy(p *proxied, text, dir string) {
	file := filepath.Join(dir, "Caddyfile")
	writeFile(p.t, file, "{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\n"+text)
	testenv.Daemon(p.t, "caddy", "caddy", "run", "--adapter", "caddyfile", "--config", file)
}

func TestBehindApache(t *testing.T) {
	testenv.Full(t)
	tryProxy(t, "apache.conf", startApacheWithPasswords)
}

func startApacheWithPasswords(p *proxied, text, dir string) {
	p.groupless = true
	p.sign = func(r *http.Request, who string) {
		if user, _, _ := strings.Cut(who, "/"); r.Header.Get("Authorization") == "" {
			r.SetBasicAuth(user, "secret")
		}
	}
	p.enter = func(tab *testenv.Tab, address, who string) {
		user, _, _ := strings.Cut(who, "/")
		tab.Open(strings.Replace(address, "https://", "https://"+user+":secret@", 1))
		tab.Open(address) // this address has no password, because the browser keeps the one from before
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		p.t.Fatal(err)
	}
	users := filepath.Join(dir, "htpasswd")
	writeFile(p.t, users, fmt.Sprintf("ana:%s\nbob:%s\neve:%s\n", hash, hash, hash))
	// Apache's workers run as the user nobody and must be able to read this file
	if err := os.Chmod(users, 0o755); err != nil {
		p.t.Fatal(err)
	}
	startApache(
		p, strings.ReplaceAll(text, "/etc/apache2/dlo.htpasswd", users), dir, "authz_core", "authz_user", "authn_core",
		"authn_file", "auth_basic",
	)
}
