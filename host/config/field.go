package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// keyBytesMin is the shortest key that is accepted: 16 characters of base64 are
// 96 bits.
const keyBytesMin = 16

// field is what is known of one field of Config.
type field struct {
	Name    string // in the file
	GoName  string
	Group   string
	Default string
	Help    string
	min     string
	max     string
	oneOf   []string
	check   string
	secret  bool
	index   int
	kind    reflect.Type
}

// Types that a field may have.
var (
	stringType   = reflect.TypeFor[string]()
	intType      = reflect.TypeFor[int]()
	bytesType    = reflect.TypeFor[Bytes]()
	durationType = reflect.TypeFor[time.Duration]()
)

// fields are the fields of Config in order.
var fields = configFields()

func configFields() []field {
	var all []field
	group := ""
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if g, ok := f.Tag.Lookup("group"); ok {
			group = g
		}
		all = append(all, field{
			Name: snake(f.Name), GoName: f.Name, Group: group, Default: f.Tag.Get("default"),
			Help: f.Tag.Get("help"), min: f.Tag.Get("min"), max: f.Tag.Get("max"),
			oneOf: strings.Fields(f.Tag.Get("oneof")), check: f.Tag.Get("check"),
			secret: f.Tag.Get("secret") != "", index: i, kind: f.Type,
		})
	}
	return all
}

// snake spells a Go name with underscores.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// Variable returns the field's name in the environment.
func (f *field) Variable() string { return "HEDDLE_" + strings.ToUpper(f.Name) }

// Flag returns the field's name as a flag, without dashes before it.
func (f *field) Flag() string { return strings.ReplaceAll(f.Name, "_", "-") }

// Allowed says what values there are.
func (f *field) Allowed() string {
	if len(f.oneOf) > 0 {
		return "one of " + strings.Join(f.oneOf, ", ")
	}
	switch f.check {
	case "filled":
		return "a text that is not empty"
	case "loopback":
		return "host:port, the host localhost or an address of loopback " +
			"(127.0.0.1, [::1]), the port 0 to 65535"
	case "key":
		return fmt.Sprintf(
			"at least %d printable ASCII characters without spaces, or empty", keyBytesMin)
	case "viewer":
		return "a URL of moq, https, http, ws or wss with a host"
	case "url":
		return "a URL of http or https with a host and nothing behind it"
	}
	switch f.kind {
	case intType:
		return fmt.Sprintf("a whole number from %s to %s", f.min, f.max)
	case bytesType:
		return fmt.Sprintf("a number of bytes from %s to %s, such as %s", f.min, f.max, f.Default)
	case durationType:
		return fmt.Sprintf("a duration from %s to %s, such as %s", f.min, f.max, f.Default)
	}
	return "a text"
}

// parse reads a value from its text, without a look at limits.
func (f *field) parse(text string) (reflect.Value, error) {
	switch f.kind {
	case stringType:
		return reflect.ValueOf(text), nil
	case intType:
		n, err := strconv.Atoi(text)
		return reflect.ValueOf(n), err
	case bytesType:
		b, err := parseBytes(text)
		return reflect.ValueOf(b), err
	case durationType:
		d, err := time.ParseDuration(text)
		return reflect.ValueOf(d), err
	}
	return reflect.Value{}, errors.New("config: a field of an unknown type")
}

// set gives the field of c the value that text spells.
func (f *field) set(c *Config, text string) error {
	v, err := f.parse(text)
	if err != nil {
		return err
	}
	reflect.ValueOf(c).Elem().Field(f.index).Set(v)
	return nil
}

// text returns the field's value as set reads it.
func (f *field) text(c *Config) string {
	return fmt.Sprint(reflect.ValueOf(c).Elem().Field(f.index).Interface())
}

// shown is text for everybody's eyes.
func (f *field) shown(c *Config) string {
	if text := f.text(c); !f.secret || text == "" {
		return text
	}
	return "***"
}

// valid reports whether the field's value in c is allowed by itself.
func (f *field) valid(c *Config) bool {
	v := reflect.ValueOf(c).Elem().Field(f.index)
	if f.kind != stringType {
		return f.inRange(v)
	}
	text := v.String()
	if len(f.oneOf) > 0 {
		return slices.Contains(f.oneOf, text)
	}
	switch f.check {
	case "filled":
		return text != ""
	case "loopback":
		return isLoopback(text)
	case "key":
		return text == "" || isKey(text)
	case "viewer":
		return isViewerURL(text)
	case "url":
		return isServerURL(text)
	}
	return true
}

func (f *field) inRange(v reflect.Value) bool {
	low, err := f.parse(f.min)
	if err != nil {
		panic("config: a minimum cannot be read")
	}
	high, err := f.parse(f.max)
	if err != nil {
		panic("config: a maximum cannot be read")
	}
	return low.Int() <= v.Int() && v.Int() <= high.Int()
}

func isLoopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

func isKey(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' {
			return false
		}
	}
	return len(key) >= keyBytesMin
}

func isServerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		(u.Path == "" || u.Path == "/") && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

func isViewerURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Hostname() != "" && u.User == nil &&
		slices.Contains([]string{"moq", "https", "http", "ws", "wss"}, u.Scheme)
}
