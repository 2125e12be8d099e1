// Package demo holds the page of `heddle demo`: its sources under web, the
// script that .ci/bundle builds of them, and the handler that serves both. It
// knows nothing of the server behind the page; host answers what the page asks.
package demo

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"time"
)

//go:embed web/index.html web/style.css web/favicon.svg web/dist/demo.js web/dist/licences.txt
var files embed.FS

// served lists every file of the page: no other path exists.
var served = []struct{ path, file, contentType string }{
	{"/", "web/index.html", "text/html; charset=utf-8"},
	{"/style.css", "web/style.css", "text/css; charset=utf-8"},
	{"/favicon.svg", "web/favicon.svg", "image/svg+xml"},
	{"/demo.js", "web/dist/demo.js", "text/javascript; charset=utf-8"},
	{"/licences.txt", "web/dist/licences.txt", "text/plain; charset=utf-8"},
}

// hostPattern is what may stand in a Host header and so in the policy below.
var hostPattern = regexp.MustCompile(`^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)

// Handler serves the page's files to GET and HEAD, and 404 for every other
// path. It checks neither Host nor Origin: the listener does. The page may load
// and run nothing but these files, and connect to nothing but its own server.
func Handler() http.Handler {
	mux := http.NewServeMux()
	for _, s := range served {
		content, err := fs.ReadFile(files, s.file)
		if err != nil {
			panic("demo: a file of the page is not embedded")
		}
		pattern := "GET " + s.path
		if s.path == "/" {
			pattern = "GET /{$}"
		}
		mux.Handle(pattern, file{
			name: path.Base(s.file), contentType: s.contentType,
			content: content, tag: tagOf(content),
		})
	}
	return mux
}

// file serves one embedded file. Browsers ask again each time and are told by
// the tag that theirs is still good.
type file struct {
	name, contentType, tag string
	content                []byte
}

func (f file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", f.tag)
	h.Set("Content-Security-Policy", policy(r.Host))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.content))
}

func tagOf(content []byte) string {
	sum := sha256.Sum256(content)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// policy allows what the page needs. 'self' is the page's own http origin;
// WebTransport is https on the same port, and not every browser counts ws as self.
func policy(host string) string {
	connect := "'self'"
	if hostPattern.MatchString(host) {
		connect = fmt.Sprintf("'self' https://%[1]s ws://%[1]s", host)
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
		"connect-src " + connect + "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
