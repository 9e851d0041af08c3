package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const secretWord = "correct horse battery"

// TestPasswords checks the rules for new passwords. It also checks that a hash matches only its own
// password.
func TestPasswords(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]string{
		"short":                            "12 to 128 characters, and this one has 5",
		strings.Repeat("ab", 65):           "this one has 130",
		"aaaaaaaaaaaaaaaa":                 "easy to guess",
		"Password1234":                     "easy to guess",
		"qwertyuiop12":                     "easy to guess",
		"1Qaz2Wsx3Edc!":                    "easy to guess",
		"rabbitmqrabbitmq":                 "easy to guess",
		strings.Repeat("0123456789", 12):   "easy to guess",
		"Lena Sato 2026 rocks":             "contains the name",
		"twelve chars\xff":                 "not valid UTF-8",
		"зима близко, друг":                "",
		strings.Repeat("4@8({<361!|70", 9): "", // each of these characters can stand for a letter
		secretWord:                         "",
	} {
		err := checkPassword(password, "lena sato")
		if want == "" && err != nil || want != "" &&
			(!errors.Is(err, deadletter.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", password, err, want)
		}
	}
	hash := hashPassword(secretWord)
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") || !samePassword(hash, secretWord) ||
		samePassword(hash, secretWord+" ") || hash == hashPassword(secretWord) {
		t.Error(hash)
	}
	long := strings.Repeat(secretWord+", ", 5) + "end"
	if hash := hashPassword(long); samePassword(hash, long[:len(long)-1]) || samePassword(hash, long[:72]) ||
		samePassword(hash, long[:64]) || !samePassword(hash, long) {
		t.Error("a part of a long password is enough")
	}
	for _, wrong := range []string{
		"", "plain", "$argon2id$v=19$m=19456,t=2,p=1$$", "$argon2i$v=19$m=19456,t=2,p=1$YWFh$YWFh",
		"$argon2id$v=19$m=999999999,t=2,p=1$YWFh$YWFh", "$argon2id$v=19$m=0,t=0,p=0$YWFh$YWFh",
	} {
		if samePassword(wrong, "") || samePassword(wrong, secretWord) {
			t.Errorf("%q is a password", wrong)
		}
	}
}

// fewUsers is a store with two users. One has a password, and the other was only invited.
type fewUsers struct {
	AccountStore
	hash string
}

func (f fewUsers) Password(_ context.Context, name string) (deadletter.User, string, error) {
	switch name {
	case "lena":
		return deadletter.User{Name: name}, f.hash, nil
	case "invited":
		return deadletter.User{Name: name}, "", nil
	}
	return deadletter.User{}, "", deadletter.NoSuch("user")
}

// TestAnUnknownNameCostsOneHashToo checks that a sign-in takes equally long whether or not a user
// has the name. Every sign-in must therefore hash the password with the same parameters.
//
// In the test, all places for computing a hash are taken. Therefore every sign-in must wait, even
// one with an unknown name.
func TestAnUnknownNameCostsOneHashToo(t *testing.T) {
	t.Parallel()
	hash := hashPassword(secretWord)
	a := NewAccounts(fewUsers{hash: hash}, nil)
	parameters := func(hash string) string { return strings.Join(strings.Split(hash, "$")[:4], "$") }
	if parameters(a.nobody) != parameters(hash) {
		t.Errorf("%s for an unknown name, and %s for a known one", a.nobody, hash)
	}
	for range maxHashing {
		a.hashing <- struct{}{}
	}
	for _, name := range []string{"lena", "invited", "unknown"} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := a.SignIn(ctx, name, secretWord, Browser{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: answered without a hash: %v", name, err)
		}
	}
}

// TestTries checks who cannot sign in after failed attempts, and for how long.
func TestTries(t *testing.T) {
	t.Parallel()
	var tries throttle
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for i := range triesOfName {
		if n, _ := tries.attemptsLeft("lena", "192.0.2.1", now); n != triesOfName-i {
			t.Fatalf("%d left after %d", n, i)
		}
		tries.takeAttempt([]string{"lena", "LENA"}[i%2], "192.0.2.1", now)
	}
	if again, ok := tries.takeAttempt(
		"Lena", "192.0.2.1", now.Add(time.Minute),
	); ok || !again.Equal(now.Add(triesWithin)) {
		t.Errorf("%t, again at %s", ok, again)
	}
	if n, _ := tries.attemptsLeft("lena", "192.0.2.2", now); n != triesOfName {
		t.Errorf("another address is locked out: %d", n)
	}
	if n, _ := tries.attemptsLeft("bob", "192.0.2.1", now); n != triesOfName {
		t.Errorf("another user is locked out: %d", n)
	}
	if n, _ := tries.attemptsLeft("lena", "192.0.2.1", now.Add(triesWithin)); n != triesOfName {
		t.Errorf("%d left after the time", n)
	}
	for i := range triesOfAddress {
		tries.takeAttempt(fmt.Sprint("user", i), "192.0.2.9", now)
	}
	if n, _ := tries.attemptsLeft("eve", "192.0.2.9", now); n != 0 {
		t.Errorf("an address that tries many names has %d left", n)
	}
	tries.removeAttempt("user1", "192.0.2.9", true)
	if n, _ := tries.attemptsLeft("eve", "192.0.2.9", now); n != 1 {
		t.Errorf("after a successful one, the address has %d left", n)
	}
	for i := range triesOfName {
		tries.takeAttempt("lena", fmt.Sprintf("2001:db8:0:7::%d", i), now)
	}
	if n, _ := tries.attemptsLeft("lena", "2001:db8:0:7:ffff::1", now); n != 0 {
		t.Errorf("another address of the same /64 has %d left", n)
	}
	if n, _ := tries.attemptsLeft("lena", "2001:db8:0:8::1", now); n != triesOfName {
		t.Errorf("another /64 has %d left", n)
	}
}

// TestTriesAreForgotten checks that attempts are remembered only for a short time, and that they
// need little memory.
func TestTriesAreForgotten(t *testing.T) {
	t.Parallel()
	var tries throttle
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	tries.takeAttempt(strings.Repeat("n", 1<<20), "192.0.2.1", now)
	for key := range tries.tried {
		if len(key) > 200 {
			t.Errorf("a key has %d bytes", len(key))
		}
	}
	for i := range 2 * maxTries {
		tries.takeAttempt(fmt.Sprint("user", i), fmt.Sprint(i), now)
	}
	if len(tries.tried) > maxTries {
		t.Errorf("%d are remembered", len(tries.tried))
	}
	for range triesOfName { // attempts count although no more keys can be remembered
		tries.takeAttempt("lena", "203.0.113.7", now)
	}
	if _, ok := tries.takeAttempt("lena", "203.0.113.7", now); ok {
		t.Error("a new address can try without limit")
	}
	tries.takeAttempt("lena", "192.0.2.1", now.Add(triesWithin))
	if len(tries.tried) != 2 {
		t.Errorf("%d are remembered after %s", len(tries.tried), triesWithin)
	}
	tries.removeAttempt("lena", "192.0.2.1", false)
	if len(tries.tried) != 0 {
		t.Errorf("%v is remembered of an attempt that was not checked", tries.tried)
	}
}

// TestCookiesOfASession checks which cookies dlo accepts as the cookie of a session.
func TestCookiesOfASession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cookies []string
		secure  bool
		want    string
	}{
		"one":               {[]string{"__Host-dlo=a"}, true, "a"},
		"twice":             {[]string{"__Host-dlo=a", "__Host-dlo=b"}, true, ""},
		"without https":     {[]string{"dlo-session=a"}, false, "a"},
		"set without https": {[]string{"dlo-session=a"}, true, ""},
		"none":              {nil, true, ""},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		for _, cookie := range c.cookies {
			r.Header.Add("Cookie", cookie)
		}
		if got := Secret(r, c.secure); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
