package system

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// provider is an OpenID Connect provider for tests. It signs in the person whose name is in the
// field "next". In that field, a slash and the groups of the person may follow the name.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu    sync.Mutex
	codes map[string]url.Values // code -> the request for authorization that it answers
	next  string                // the person who signs in next
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(rw http.ResponseWriter, _ *http.Request) {
		answerJSON(rw, map[string]any{
			"issuer":                                p.URL,
			"authorization_endpoint":                p.URL + "/authorize",
			"token_endpoint":                        p.URL + "/token",
			"jwks_uri":                              p.URL + "/keys",
			"response_types_supported":              []string{"code"},
			"subject_types_supported":               []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
		})
	})
	mux.HandleFunc("GET /keys", func(rw http.ResponseWriter, _ *http.Request) {
		answerJSON(rw, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256",
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("GET /authorize", func(rw http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query()
		p.mu.Lock()
		code := fmt.Sprint("code-", len(p.codes))
		asked.Set("who", p.next)
		p.codes[code] = asked
		p.mu.Unlock()
		http.Redirect(rw, r, asked.Get("redirect_uri")+"?"+url.Values{
			"code":  {code},
			"state": {asked.Get("state")},
		}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(rw http.ResponseWriter, r *http.Request) {
		client, secret, _ := r.BasicAuth()
		p.mu.Lock()
		asked := p.codes[r.FormValue("code")]
		p.mu.Unlock()
		if client != "dlo" || secret != "client-secret" || asked == nil {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		name, groups, _ := strings.Cut(asked.Get("who"), "/")
		claims := map[string]any{
			"iss": p.URL, "sub": name, "aud": "dlo", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(),
			"nonce": asked.Get("nonce"), "email": name,
		}
		if groups != "" {
			claims["groups"] = strings.Split(groups, ",")
		}
		answerJSON(rw, map[string]any{
			"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "id_token": p.signed(claims),
		})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// signed returns the given claims as a signed JSON Web Token.
func (p *provider) signed(claims map[string]any) string {
	encode := func(v any) string {
		text, _ := json.Marshal(v) // cannot fail for texts and numbers
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := encode(map[string]string{"alg": "RS256", "kid": "1", "typ": "JWT"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, p.key, crypto.SHA256, sum[:])
	if err != nil {
		panic(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func answerJSON(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	json.NewEncoder(rw).Encode(v)
}

// expect sets the person who signs in next.
func (p *provider) expect(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = who
}

// signIn signs a person in as a browser would, and returns the cookies of the session.
func (p *provider) signIn(t *testing.T, to *proxied, who string) []*http.Cookie {
	t.Helper()
	p.expect(who)
	cookies := map[string]*http.Cookie{}
	for at, hops := "https://dlo.example.com"+to.base+"/account", 0; hops < 6; hops++ {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		client := http.DefaultTransport
		if strings.HasPrefix(at, "https://dlo.example.com") {
			client = to.client.Transport
			for _, c := range cookies {
				r.AddCookie(c)
			}
		}
		answer, err := client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		for _, c := range answer.Cookies() {
			cookies[c.Name] = c
		}
		if answer.StatusCode == http.StatusOK {
			break
		}
		next, err := answer.Location()
		if err != nil {
			t.Fatalf("%s answers %d without a location", at, answer.StatusCode)
		}
		at = next.String()
	}
	var list []*http.Cookie
	for _, c := range cookies {
		list = append(list, c)
	}
	return list
}

func TestBehindApacheWithOpenIDConnect(t *testing.T) {
	testenv.Full(t)
	tryProxy(t, "apache-openidc.conf", func(p *proxied, text, dir string) {
		issuer := newProvider(t)
		signedIn := map[string][]*http.Cookie{}
		p.sign = func(r *http.Request, who string) {
			if signedIn[who] == nil {
				signedIn[who] = issuer.signIn(t, p, who)
			}
			for _, c := range signedIn[who] {
				r.AddCookie(c)
			}
		}
		p.enter = func(tab *testenv.Tab, address, who string) {
			issuer.expect(who)
			tab.Open(address)
		}
		text = strings.NewReplacer(
			"https://id.example.com", issuer.URL, "https://dlo.example.com/oidc",
			fmt.Sprintf("https://dlo.example.com:%d/oidc", p.port),
		).Replace(text)
		startApache(p, text, dir, "authz_core", "authz_user", "authn_core", "auth_openidc")
	})
}

// startApache starts Apache with the given modules. The parameter "text" is a part of its
// configuration.
func startApache(p *proxied, text, dir string, modules ...string) {
	p.t.Helper()
	load := ""
	for _, m := range append(modules, "mpm_event", "headers", "proxy", "proxy_http", "ssl", "socache_shmcb") {
		file := "/usr/lib/apache2/modules/mod_" + m + ".so"
		if _, err := os.Stat(file); err == nil {
			load += fmt.Sprintf("LoadModule %s_module %s\n", m, file)
		}
	}
	main := filepath.Join(dir, "apache.conf")
	writeFile(
		p.t, main,
		fmt.Sprintf(
			"ServerRoot %s\nPidFile %s/pid\nDefaultRuntimeDir %s\nErrorLog /dev/stderr\nListen 127.0.0.1:%d\nServerName dlo.example.com\nUser nobody\nGroup nogroup\n%s%s",
			dir, dir, dir, p.port, load, text,
		),
	)
	// Apache's workers run as the user nobody and must be able to read these folders
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	testenv.Daemon(p.t, "apache2", "apache2", "-d", dir, "-f", main, "-DFOREGROUND")
}
