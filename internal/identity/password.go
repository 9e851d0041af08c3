package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/trustelem/zxcvbn"
	"golang.org/x/crypto/argon2"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// These are the parameters of argon2id. The OWASP Password Storage Cheat Sheet asks for at least 19
// MiB, 2 passes and 1 lane.
const (
	argonTime   = 2
	argonMemory = 19 << 10 // in KiB
	argonLanes  = 1
	argonKey    = 32 // in bytes
	argonSalt   = 16 // in bytes
)

// These are the limits of passwords (OWASP ASVS 4.0.3, 2.1.1 and 2.1.2).
const (
	minPassword = 12  // in characters
	maxPassword = 128 // in characters
)

// minScore is the zxcvbn score, from 0 to 4, that a new password must have. The score 3 means at
// least 10^8 guesses. zxcvbn contains the 30,000 leaked passwords that are used most often (OWASP
// ASVS 4.0.3, 2.1.7). It sends nothing over the network.
const minScore = 3

// maxScored is the number of characters of a password that zxcvbn scores. If this number were twice
// as large, zxcvbn would need more than four times as long.
const maxScored = 64

// checkPassword checks a new password. The error wraps deadletter.ErrInvalid and never contains the
// password.
func checkPassword(password, name string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case !utf8.ValidString(password):
		return fmt.Errorf("%w: the password is not valid UTF-8", deadletter.ErrInvalid)
	case n < minPassword || n > maxPassword:
		return fmt.Errorf(
			"%w: a password has %d to %d characters, and this one has %d", deadletter.ErrInvalid, minPassword,
			maxPassword, n,
		)
	case strings.Contains(strings.ToLower(password), strings.ToLower(name)) && utf8.RuneCountInString(name) > 3:
		return fmt.Errorf("%w: the password contains the name", deadletter.ErrInvalid)
	case zxcvbn.PasswordStrength(firstChars(password, maxScored), []string{
		name, "dlo", "deadletter", "rabbitmq",
	}).Score < minScore:
		return fmt.Errorf(
			"%w: the password is easy to guess: it is made of leaked passwords, common words, names, dates or repetitions; choose four unrelated words",
			deadletter.ErrInvalid,
		)
	}
	return nil
}

// firstChars returns the first n characters of s.
func firstChars(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// hashPassword returns the argon2id hash of a password in PHC format.
func hashPassword(password string) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // crypto/rand never returns an error here
	key := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, argonKey)
	encode := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf(
		"$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes, encode(salt),
		encode(key),
	)
}

// samePassword reports whether a password matches a hash in PHC format.
func samePassword(hash, password string) bool {
	var version, memory, time, lanes int
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	if _, err := fmt.Sscanf(
		parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &time, &lanes,
	); err != nil || version != argon2.Version {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	key, wrong := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || wrong != nil || len(key) == 0 || memory > 1<<20 || time > 16 || lanes > 16 || memory < 8 ||
		time < 1 || lanes < 1 {
		return false
	}
	return subtle.ConstantTimeCompare(
		argon2.IDKey([]byte(password), salt, uint32(time), uint32(memory), uint8(lanes), uint32(len(key))), key,
	) == 1
}
