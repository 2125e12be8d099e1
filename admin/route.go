package admin

import (
	"net/http"
	"strings"
	"time"
)

// right is what a caller must have to use a route.
type right uint8

const (
	rightKey    right = iota // the admin key as bearer token
	rightOpen                // nothing: health
	rightPublic              // the key on the admin listener, nothing on the data listener
	rightPage                // the key as bearer token or as the password of HTTP Basic
)

// route is one row of the table: what is served, to whom, and how it is documented.
type route struct {
	method, path string
	id           string // operation id in OpenAPI, label in metrics
	tag          string // section of the documentation
	summary      string // a few words
	description  string // whole sentences
	right        right
	rest         bool   // further segments of the path, if any, are the parameter "key"
	flags        []flag // query parameters
	idempotent   bool   // takes the header Idempotency-Key
	bodies       []body // accepted request bodies; none if the route takes no body
	status       int    // of success
	answer       any    // a value of the answer's Go type; nil for text in media
	media        string // of the answer, "application/json" if ""
	problems     []int  // statuses of errors beyond 401, 403 and 500
	curl         string // what follows the key in an example; its first / begins the path

	handle func(a *API, w http.ResponseWriter, r *http.Request) error
	watch  func(status int, took time.Duration) // metrics; nil for unknown routes
}

// flag is a query parameter: a boolean, or a number from 0 on.
type flag struct {
	name, description string
	number            bool
}

// expectFlag is the parameter of every route that writes facts, and the member of
// their bodies.
var expectFlag = flag{
	"expect_revision",
	"Write only if the graph is at this revision, that of your last read or write; else 409.",
	true,
}

// body is a request body that a route accepts.
type body struct {
	media   string
	shape   any    // a value of its Go type, nil for text
	example string // as sent
}

// patterns returns the paths under which the route is served, as the mux has them.
func (r *route) patterns() []string {
	if !r.rest {
		return []string{r.path}
	}
	short := strings.TrimSuffix(r.path, "/{key}")
	return []string{short, short + "/*"}
}

// refusedKey refuses an Idempotency-Key on a route that writes and keeps none:
// who sends one relies on it.
func (r *route) refusedKey(request *http.Request) error {
	writes := r.method != http.MethodGet && r.right == rightKey
	if r.idempotent || !writes || request.Header.Get("Idempotency-Key") == "" {
		return nil
	}
	p := newProblem(http.StatusBadRequest, "idempotency_key",
		"%s %s takes no Idempotency-Key", r.method, r.path).
		withHint("leave the header out; whoever repeats this request finds what it did the " +
			"first time")
	detail := Detail{Message: p.Detail, Location: "header Idempotency-Key"}
	return p.withErrors([]Detail{detail}, 1)
}

func (r *route) observe(status int, took time.Duration) {
	if r.watch != nil {
		r.watch(status, took)
	}
}
