package protocol

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxPathSegments is the largest number of segments in a path on any version.
const MaxPathSegments = 32

// ErrPath is wrapped by every error of ParsePath.
var ErrPath = errors.New("invalid path")

// Path is a normalised broadcast path: segments joined by single slashes, none
// at either end. The empty Path is the root and a prefix of every path.
type Path string

// ParsePath normalises s: leading and trailing slashes are trimmed and repeated
// ones collapsed. It refuses invalid UTF-8 and more than MaxPathSegments segments.
//
// Source: draft-lcurley-moq-lite; behaviour of deployed clients.
func ParsePath(s string) (Path, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%w: not UTF-8", ErrPath)
	}
	// Trim is a slice of s: without the copy a short path could keep a long string.
	if t := strings.Trim(s, "/"); len(t) < len(s) {
		s = strings.Clone(t)
	}
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	if n := strings.Count(s, "/") + 1; n > MaxPathSegments {
		return "", fmt.Errorf("%w: %d segments, at most %d", ErrPath, n, MaxPathSegments)
	}
	return Path(s), nil
}

// HasPrefix reports whether prefix covers p, whole segments only: "foo" covers
// "foo" and "foo/bar", not "foobar".
func (p Path) HasPrefix(prefix Path) bool {
	if prefix == "" || p == prefix {
		return true
	}
	return len(p) > len(prefix) && p[len(prefix)] == '/' && p[:len(prefix)] == prefix
}

// TrimPrefix returns what follows prefix in p, and false if prefix does not cover p.
func (p Path) TrimPrefix(prefix Path) (Path, bool) {
	if !p.HasPrefix(prefix) {
		return "", false
	}
	if prefix == "" {
		return p, true
	}
	return Path(strings.TrimPrefix(string(p[len(prefix):]), "/")), true
}

// Join appends q to p.
func (p Path) Join(q Path) Path {
	switch {
	case p == "":
		return q
	case q == "":
		return p
	}
	return p + "/" + q
}
