package admin

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
)

// bodyUpfrontBytes is how much memory a body gets before its client has sent as
// much: a length alone must not cost more.
const bodyUpfrontBytes = 64 << 10

// readBody reads the whole body, at most limit bytes of it; name is the limit's
// name in the configuration. A longer body is a 413 that says so.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, name string) (string, error) {
	if r.ContentLength > limit {
		return "", tooLarge(limit, name)
	}
	var body []byte
	var err error
	if n := r.ContentLength; n >= 0 && n <= bodyUpfrontBytes {
		body = make([]byte, n)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	if err != nil {
		return "", bodyError(err, name)
	}
	return string(body), nil
}

// bodyError says why a body could not be read.
func bodyError(err error, name string) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit, name)
	}
	return newProblem(http.StatusBadRequest, "body_incomplete", "the body ended early: %s", err)
}

func tooLarge(limit int64, name string) *Problem {
	return newProblem(http.StatusRequestEntityTooLarge, "body_too_large",
		"the body is larger than %d bytes, this server's limit for this route (%s)", limit, name).
		withHint("send it in several requests, or raise %s in the server's configuration", name)
}

// The shapes of a body that routes tell apart.
type bodyShape uint8

const (
	shapeJSON bodyShape = iota
	shapeText
)

// shapeOf decides between JSON and program text by the media type, and by the
// first character where a client sent none or curl its default. Other types are a 415.
func shapeOf(r *http.Request, body string) (bodyShape, error) {
	header := r.Header.Get("Content-Type")
	if header == "application/json" {
		return shapeJSON, nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil && header != "" {
		return 0, newProblem(http.StatusUnsupportedMediaType, "media_type",
			"Content-Type %q cannot be read", shortened(header))
	}
	switch media {
	case "application/json":
		return shapeJSON, nil
	case "text/plain":
		return shapeText, nil
	case "", "application/x-www-form-urlencoded", "application/octet-stream":
		if strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") {
			return shapeJSON, nil
		}
		return shapeText, nil
	}
	return 0, newProblem(http.StatusUnsupportedMediaType, "media_type",
		"this route does not take %s", shortened(media)).
		withHint("send application/json or text/plain")
}

// pathValue returns a path parameter, unescaped.
func pathValue(r *http.Request, name string) string {
	v := chi.URLParam(r, name)
	if strings.Contains(v, "%") {
		if u, err := url.PathUnescape(v); err == nil {
			return u
		}
	}
	return v
}

// queryFlags reads the booleans among a route's query parameters: ?dry_run,
// ?dry_run=true, ?dry_run=false. Unknown names and other values are errors.
func queryFlags(r *http.Request, known []flag) (map[string]bool, error) {
	flags, _, err := queryValues(r, known)
	return flags, err
}

// queryValues reads a route's query parameters, which are booleans or numbers.
func queryValues(r *http.Request, known []flag) (
	flags map[string]bool, numbers map[string]uint64, err error,
) {
	if r.URL.RawQuery == "" {
		return nil, nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, nil, newProblem(http.StatusBadRequest, "parameter_invalid",
			"the query string cannot be read: %s", err)
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	flags, numbers = make(map[string]bool, len(values)), map[string]uint64{}
	for name, list := range values {
		at := slices.Index(names, name)
		if at < 0 {
			fallback := "this route takes " + strings.Join(names, ", ")
			if len(names) == 0 {
				fallback = "this route takes none"
			}
			return nil, nil, newProblem(http.StatusBadRequest, "parameter_unknown",
				"unknown query parameter %q", shortened(name)).
				withHint("%s", didYouMean(name, names, fallback))
		}
		v := list[len(list)-1]
		if known[at].number {
			if numbers[name], err = strconv.ParseUint(v, 10, 63); err != nil {
				return nil, nil, newProblem(http.StatusBadRequest, "parameter_invalid",
					"query parameter %s: expected a number from 0 on, got %q", name, shortened(v))
			}
			continue
		}
		switch v {
		case "true", "1", "":
			flags[name] = true
		case "false", "0":
			flags[name] = false
		default:
			return nil, nil, newProblem(http.StatusBadRequest, "parameter_invalid",
				"query parameter %s: expected true or false, got %q", name, shortened(v))
		}
	}
	return flags, numbers, nil
}
