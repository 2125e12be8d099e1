package protocol

import (
	"errors"
	"strings"
	"testing"
)

func TestParsePath(t *testing.T) {
	deep := strings.Repeat("d/", MaxPathSegments-1) + "d"
	cases := []struct {
		in   string
		want Path
		err  error
	}{
		{"", "", nil},
		{"/", "", nil},
		{"///", "", nil},
		{"a", "a", nil},
		{"/a/", "a", nil},
		{"//a///b/", "a/b", nil},
		{"a/~2f/ü", "a/~2f/ü", nil},
		{deep, Path(deep), nil},
		{"/" + deep + "//", Path(deep), nil},
		{deep + "/d", "", ErrPath},
		{"a\xff", "", ErrPath},
	}
	for _, c := range cases {
		if got, err := ParsePath(c.in); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("ParsePath(%q) = %q, %v", c.in, got, err)
		}
	}
}

func TestPrefixes(t *testing.T) {
	cases := []struct {
		path, prefix, rest Path
		ok                 bool
	}{
		{"foo", "", "foo", true},
		{"", "", "", true},
		{"foo", "foo", "", true},
		{"foo/bar", "foo", "bar", true},
		{"foo/bar/x", "foo/bar", "x", true},
		{"foobar", "foo", "", false},
		{"foo", "foo/bar", "", false},
		{"", "foo", "", false},
	}
	for _, c := range cases {
		rest, ok := c.path.TrimPrefix(c.prefix)
		if rest != c.rest || ok != c.ok || c.path.HasPrefix(c.prefix) != c.ok {
			t.Errorf("%q below %q: %q, %v", c.path, c.prefix, rest, ok)
		}
		if ok && c.prefix.Join(rest) != c.path {
			t.Errorf("%q joined with %q: %q", c.prefix, rest, c.prefix.Join(rest))
		}
	}
}

func TestErrorsSayWho(t *testing.T) {
	for want, err := range map[string]error{
		"stream ended by us with code 13":           &StreamError{Code: CodeNotFound},
		"stream ended by peer with code 2: late":    &StreamError{CodeOld, true, "late"},
		"session closed by peer with code 15: junk": &SessionError{15, true, "junk"},
		"session closed by us with code 0: ":        &SessionError{},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("//a///b/")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePath(s)
		if err != nil {
			return
		}
		if again, err := ParsePath(string(p)); again != p || err != nil {
			t.Errorf("%q: %q then %q, %v", s, p, again, err)
		}
		if strings.Contains(string(p), "//") || strings.HasPrefix(string(p), "/") ||
			strings.HasSuffix(string(p), "/") {
			t.Errorf("%q is not normal: %q", s, p)
		}
	})
}
