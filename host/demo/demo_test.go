package demo

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, method, target string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:4443"+target, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestHandlerServesThePage(t *testing.T) {
	for _, s := range served {
		r := get(t, "GET", s.path, nil)
		contentType := r.Header.Get("Content-Type")
		if r.StatusCode != http.StatusOK || contentType != s.contentType || body(t, r) == "" {
			t.Errorf("%s: %d, %s", s.path, r.StatusCode, contentType)
		}
		again := get(t, "GET", s.path, http.Header{"If-None-Match": {r.Header.Get("ETag")}})
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its tag: %d", s.path, again.StatusCode)
		}
	}
}

func TestHandlerServesNothingElse(t *testing.T) {
	for _, path := range []string{
		"/x", "/web/index.html", "/index.html", "/demo.ts", "/dist/demo.js", "/..%2fdemo.go",
	} {
		if r := get(t, "GET", path, nil); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
	if r := get(t, "POST", "/", nil); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.StatusCode)
	}
}

func TestPolicy(t *testing.T) {
	got := get(t, "GET", "/", nil).Header.Get("Content-Security-Policy")
	want := "connect-src 'self' https://127.0.0.1:4443 ws://127.0.0.1:4443;"
	if !strings.Contains(got, want) || strings.Contains(got, "unsafe") {
		t.Errorf("policy %q", got)
	}
	for _, host := range []string{"a; script-src *", "a b", "", "*", "https://x", "x:y"} {
		if p := policy(host); !strings.Contains(p, "connect-src 'self';") {
			t.Errorf("host %q gets %q", host, p)
		}
	}
	for _, host := range []string{"localhost:1", "[::1]:4443", "example.org"} {
		if p := policy(host); !strings.Contains(p, "ws://"+host+";") {
			t.Errorf("host %q gets %q", host, p)
		}
	}
}

// The policy forbids inline code and style, and everything from elsewhere.
func TestPageKeepsItsPolicy(t *testing.T) {
	page := body(t, get(t, "GET", "/", nil))
	for _, pattern := range []string{
		`<script>`, `<style`, `\sstyle=`, `\son[a-z]+=`, `(?:src|href)="(?:https?:)?//`, `javascript:`,
	} {
		if found := regexp.MustCompile(pattern).FindString(page); found != "" {
			t.Errorf("the page contains %q", found)
		}
	}
	style := body(t, get(t, "GET", "/style.css", nil))
	if strings.Contains(style, "@import") || strings.Contains(style, "url(") {
		t.Error("the style sheet loads something")
	}
}

func TestLicencesNameWhatIsBundled(t *testing.T) {
	text := body(t, get(t, "GET", "/licences.txt", nil))
	for _, name := range []string{"@moq/net ", "@moq/qmux ", "@moq/signals ", "Apache License"} {
		if !strings.Contains(text, name) {
			t.Errorf("licences.txt does not name %s", name)
		}
	}
}
