package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// savedContexts is the content of the file in which `dlo login` saves servers, each with its token.
// Only the owner may have access to this file.
type savedContexts struct {
	Current  string         `json:"current"` // name of the context in use; "" if there is none
	Contexts []savedContext `json:"contexts"`
}

type savedContext struct {
	Name   string `json:"name"`
	Server string `json:"server"`
	Token  string `json:"token"`
}

// contextsFile returns the path of the file with the saved contexts. The file is below
// XDG_CONFIG_HOME, or else below .config in the home directory. The path is "" if neither directory
// is known.
func contextsFile(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "dlo", "contexts.json")
	}
	if home := getenv("HOME"); home != "" {
		return filepath.Join(home, ".config", "dlo", "contexts.json")
	}
	return ""
}

// readContexts reads the saved contexts from their file. If the file does not exist, there are no
// contexts. If other users have access to the file, readContexts returns an error.
func readContexts(getenv func(string) string) (savedContexts, error) {
	var s savedContexts
	path := contextsFile(getenv)
	info, err := os.Stat(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, err
	case info.Mode().Perm()&0o077 != 0:
		return s, fmt.Errorf(
			"%s can be read by others, and contains tokens: run chmod 600 %s, and revoke the tokens if others may have read them",
			path, path,
		)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("%s cannot be read: %w; remove it, and run dlo login again", path, err)
	}
	return s, nil
}

// write replaces the file with the saved contexts.
func (s savedContexts) write(getenv func(string) string) error {
	path := contextsFile(getenv)
	if path == "" {
		return errors.New("there is no place for the file: set HOME or XDG_CONFIG_HOME")
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "contexts-*") // the new file has mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (s *savedContexts) find(name string) *savedContext {
	if i := slices.IndexFunc(s.Contexts, func(c savedContext) bool { return c.Name == name }); i >= 0 {
		return &s.Contexts[i]
	}
	return nil
}

// inUse returns the context that a command uses. It is the one that --context names, or else the
// one that DLO_CONTEXT names, or else the current one. inUse returns nil if there is none.
func inUse(named string, getenv func(string) string) (*savedContext, error) {
	s, err := readContexts(getenv)
	if err != nil {
		return nil, err
	}
	name := named
	if name == "" {
		name = getenv("DLO_CONTEXT")
	}
	if name == "" {
		return s.find(s.Current), nil
	}
	c := s.find(name)
	if c == nil {
		return nil, fmt.Errorf(
			"%w: there is no context %q; dlo context list shows those that dlo login has saved", errUsage, name,
		)
	}
	return c, nil
}

// sameServer reports whether two URLs are equal apart from a slash at the end. dlo uses it to
// decide whether to send a token, because a token is sent only to the server with which it was
// saved.
func sameServer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }
