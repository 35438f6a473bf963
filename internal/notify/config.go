package notify

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Config says whom to tell, and how. Credentials are not in it: it names entries of a Secret, which is mounted beside it, so that
// it can lie in Git. A reference to an entry is the name of a file in the directory of the credentials.
type Config struct {
	// Cluster names the cluster in every message; receivers that serve several clusters tell them apart by it.
	Cluster string `json:"cluster,omitempty"`
	// Destinations are where messages can go.
	Destinations []Destination `json:"destinations"`
	// Routes say which messages go where: the first that fits decides. A message that none fits goes to the fallback.
	Routes []Route `json:"routes,omitempty"`
	// People are the destinations of persons by their user names at the CI system.
	People map[string][]string `json:"people,omitempty"`
	// Fallback is where messages go that no route fits, and those to persons who are not among the people: bots, for example.
	Fallback []string `json:"fallback"`
}

// Destination is one place for messages: exactly one of its kinds is set.
type Destination struct {
	// Name is what routes call it; it is also shown in logs and metrics.
	Name         string        `json:"name"`
	Alertmanager *Alertmanager `json:"alertmanager,omitempty"`
	Slack        *Slack        `json:"slack,omitempty"`
	PagerDuty    *PagerDuty    `json:"pagerduty,omitempty"`
	Webhook      *Webhook      `json:"webhook,omitempty"`
}

// Alertmanager is an Alertmanager with its v2 API.
type Alertmanager struct {
	// URL is where it is, without /api/v2: http://alertmanager.monitoring:9093. Either this or URLFrom.
	URL string `json:"url,omitempty"`
	// URLFrom names the entry that holds the URL.
	URLFrom string `json:"urlFrom,omitempty"`
	// TokenFrom names the entry that holds a bearer token; "" for none.
	TokenFrom string `json:"tokenFrom,omitempty"`
}

// Slack is a channel: an incoming webhook, or a bot with a channel.
type Slack struct {
	// WebhookFrom names the entry that holds the URL of an incoming webhook.
	WebhookFrom string `json:"webhookFrom,omitempty"`
	// TokenFrom names the entry that holds a bot's token with the scope chat:write; it needs a channel.
	TokenFrom string `json:"tokenFrom,omitempty"`
	// Channel is the ID of a channel or of a user, for a bot.
	Channel string `json:"channel,omitempty"`
	// URL is the API of Slack, for a bot. Default https://slack.com/api.
	URL string `json:"url,omitempty"`
}

// PagerDuty is a service with an integration of the Events API v2.
type PagerDuty struct {
	// RoutingKeyFrom names the entry that holds the integration key.
	RoutingKeyFrom string `json:"routingKeyFrom"`
	// URL is the Events API. Default https://events.pagerduty.com; accounts in Europe have https://events.eu.pagerduty.com.
	URL string `json:"url,omitempty"`
}

// Webhook is anything that takes a POST of JSON.
type Webhook struct {
	// URL is where to POST. Either this or URLFrom.
	URL string `json:"url,omitempty"`
	// URLFrom names the entry that holds the URL.
	URLFrom string `json:"urlFrom,omitempty"`
	// TokenFrom names the entry that holds a bearer token; "" for none.
	TokenFrom string `json:"tokenFrom,omitempty"`
}

// Route says where messages go that fit all it names; what it does not name fits every message.
type Route struct {
	Owner    string   `json:"owner,omitempty"`
	Severity Severity `json:"severity,omitempty"`
	To       []string `json:"to"`
}

// ParseConfig reads a configuration in YAML or JSON, strictly: a field that it does not know is an error.
func ParseConfig(text []byte) (*Config, error) {
	c := &Config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("not a configuration of notifications: %s", unquoted(err))
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// What parsers say of a file may quote it, and somebody may have put a credential where a name belongs.
var quoted = regexp.MustCompile("(\"[^\"]*\"|'[^']*'|`[^`]*`)")

// unquoted is what a parser says without what it quotes, field names aside.
func unquoted(err error) string {
	return quoted.ReplaceAllStringFunc(err.Error(), func(s string) string {
		if fieldName.MatchString(s[1 : len(s)-1]) {
			return s
		}
		return "…"
	})
}

var (
	// A field of the configuration or its path in it.
	fieldName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z.]{0,40}$`)
	// A destination, or the entry of a Secret.
	plainName = regexp.MustCompile(`^[a-zA-Z0-9]([-._a-zA-Z0-9]{0,98}[a-zA-Z0-9])?$`)
)

func (c *Config) validate() error {
	var errs []error
	if len(c.Destinations) == 0 {
		errs = append(errs, errors.New("destinations: there is none: name one, for example {name: chat, slack: {webhookFrom: slack-url}}"))
	}
	known := map[string]bool{}
	for i, d := range c.Destinations {
		at := fmt.Sprintf("destinations[%d]", i)
		switch {
		case !plainName.MatchString(d.Name):
			errs = append(errs, fmt.Errorf("%s.name: want letters, digits, '-', '.' and '_'", at))
		case known[d.Name]:
			errs = append(errs, fmt.Errorf("%s.name: %s is there twice: give each destination its own name", at, d.Name))
		}
		known[d.Name] = true
		errs = append(errs, d.validate(at))
	}
	to := func(at string, names []string) {
		if len(names) == 0 {
			errs = append(errs, fmt.Errorf("%s: names no destination: list at least one", at))
		}
		for i, n := range names {
			if !known[n] {
				errs = append(errs, fmt.Errorf("%s[%d]: is not the name of a destination: the names are %s", at, i, strings.Join(c.names(), ", ")))
			}
		}
	}
	for i, r := range c.Routes {
		to(fmt.Sprintf("routes[%d].to", i), r.To)
		if r.Severity != "" && r.Severity != Note && r.Severity != Page {
			errs = append(errs, fmt.Errorf("routes[%d].severity: want %s or %s, or leave it out for both", i, Note, Page))
		}
	}
	for person, names := range c.People {
		to("people["+cut(person, 80)+"]", names)
	}
	to("fallback", c.Fallback)
	return errors.Join(errs...)
}

func (c *Config) names() []string {
	var out []string
	for _, d := range c.Destinations {
		if plainName.MatchString(d.Name) {
			out = append(out, d.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// validate checks one destination; at is its place in the file.
func (d Destination) validate(at string) error {
	kinds := 0
	var err error
	if a := d.Alertmanager; a != nil {
		kinds, err = kinds+1, errors.Join(err, oneURL(at+".alertmanager", a.URL, a.URLFrom), entries(at+".alertmanager", map[string]string{"tokenFrom": a.TokenFrom}))
	}
	if s := d.Slack; s != nil {
		kinds, err = kinds+1, errors.Join(err, s.validate(at+".slack"))
	}
	if p := d.PagerDuty; p != nil {
		kinds, err = kinds+1, errors.Join(err, address(at+".pagerduty.url", p.URL), entries(at+".pagerduty", map[string]string{"routingKeyFrom": p.RoutingKeyFrom}))
		if p.RoutingKeyFrom == "" {
			err = errors.Join(err, fmt.Errorf("%s.pagerduty.routingKeyFrom: is missing: name the entry of the Secret that holds the integration key", at))
		}
	}
	if w := d.Webhook; w != nil {
		kinds, err = kinds+1, errors.Join(err, oneURL(at+".webhook", w.URL, w.URLFrom), entries(at+".webhook", map[string]string{"tokenFrom": w.TokenFrom}))
	}
	if kinds != 1 {
		err = errors.Join(err, fmt.Errorf("%s: has %d kinds: want exactly one of alertmanager, slack, pagerduty and webhook", at, kinds))
	}
	return err
}

func (s *Slack) validate(at string) error {
	err := errors.Join(address(at+".url", s.URL), entries(at, map[string]string{"webhookFrom": s.WebhookFrom, "tokenFrom": s.TokenFrom}))
	switch {
	case (s.WebhookFrom == "") == (s.TokenFrom == ""):
		err = errors.Join(err, fmt.Errorf("%s: want either webhookFrom, or tokenFrom with a channel", at))
	case s.TokenFrom != "" && s.Channel == "":
		err = errors.Join(err, fmt.Errorf("%s.channel: is missing: a bot needs the ID of a channel", at))
	case s.WebhookFrom != "" && (s.Channel != "" || s.URL != ""):
		err = errors.Join(err, fmt.Errorf("%s: an incoming webhook knows its channel and its address: leave channel and url out", at))
	}
	return err
}

// oneURL checks that a URL is given in exactly one way.
func oneURL(at, literal, from string) error {
	if (literal == "") == (from == "") {
		return fmt.Errorf("%s: want either url or urlFrom, the entry of the Secret that holds it", at)
	}
	return errors.Join(address(at+".url", literal), entries(at, map[string]string{"urlFrom": from}))
}

// address checks a URL that stands in the configuration itself, which nobody keeps secret.
func address(at, literal string) error {
	if literal == "" {
		return nil
	}
	u, err := url.Parse(literal)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: want http://HOST or https://HOST, with a path or without", at)
	case u.User != nil || u.RawQuery != "":
		return fmt.Errorf("%s: has a user or a query, where credentials are: put the URL into the Secret", at)
	}
	return nil
}

// entries checks the names of entries of the Secret: a credential put there by mistake is refused, and not repeated.
func entries(at string, named map[string]string) error {
	var errs []error
	for field, name := range named {
		if name != "" && !plainName.MatchString(name) {
			errs = append(errs, fmt.Errorf("%s.%s: want the name of an entry of the Secret with the credentials, not a credential", at, field))
		}
	}
	return errors.Join(errs...)
}
