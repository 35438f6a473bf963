package notify

import (
	"slices"
	"strings"
	"testing"
)

const marker = "MARKERxoxb-1234567890-planted"

func TestConfigurationIsReadStrictly(t *testing.T) {
	t.Parallel()
	const good = "destinations: [{name: chat, slack: {webhookFrom: slack-url}}]\nfallback: [chat]\n"
	if _, err := ParseConfig([]byte(good)); err != nil {
		t.Fatalf("a good one: %v", err)
	}
	for name, c := range map[string]struct{ text, says string }{
		"an unknown field":                       {good + "reciever: x\n", `unknown field "reciever"`},
		"no destination":                         {"fallback: [chat]", "destinations: there is none"},
		"no fallback":                            {"destinations: [{name: chat, slack: {webhookFrom: u}}]", "fallback: names no destination"},
		"a destination of two kinds":             {"destinations: [{name: a, slack: {webhookFrom: u}, webhook: {urlFrom: u}}]\nfallback: [a]", "destinations[0]: has 2 kinds: want exactly one"},
		"a name that is there twice":             {"destinations: [{name: a, webhook: {urlFrom: u}}, {name: a, webhook: {urlFrom: u}}]\nfallback: [a]", "destinations[1].name: a is there twice"},
		"a route to nowhere":                     {good + "routes: [{owner: x, to: [pager]}]", "routes[0].to[0]: is not the name of a destination: the names are chat"},
		"a severity that is none":                {good + "routes: [{severity: high, to: [chat]}]", "routes[0].severity: want message or page"},
		"a person without a destination":         {good + "people: {alice: []}", "people[alice]: names no destination"},
		"a bot without a channel":                {"destinations: [{name: a, slack: {tokenFrom: t}}]\nfallback: [a]", "slack.channel: is missing"},
		"no integration key":                     {"destinations: [{name: a, pagerduty: {}}]\nfallback: [a]", "pagerduty.routingKeyFrom: is missing"},
		"two addresses":                          {"destinations: [{name: a, webhook: {url: 'http://h', urlFrom: u}}]\nfallback: [a]", "webhook: want either url or urlFrom"},
		"an address with a password":             {"destinations: [{name: a, webhook: {url: 'https://u:" + marker + "@h/'}}]\nfallback: [a]", "has a user or a query"},
		"an address with a query":                {"destinations: [{name: a, webhook: {url: 'https://h/?t=" + marker + "'}}]\nfallback: [a]", "put the URL into the Secret"},
		"no address at all":                      {"destinations: [{name: a, webhook: {url: '" + marker + "'}}]\nfallback: [a]", "want http://HOST or https://HOST"},
		"a credential in place of an entry":      {"destinations: [{name: a, slack: {webhookFrom: 'https://h/" + marker + "'}}]\nfallback: [a]", "slack.webhookFrom: want the name of an entry"},
		"a credential in place of a name":        {good + "routes: [{to: ['https://h/" + marker + "']}]", "is not the name of a destination"},
		"a credential where a structure belongs": {"destinations: 'https://h/" + marker + "'", "destinations"},
		"no YAML":                                {"a: b: " + marker, "not a configuration of notifications"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseConfig([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "MARKER") {
				t.Errorf("it repeats what may be a credential: %v", err)
			}
		})
	}
}

func TestMessagesAreRoutedByOwnerAndSeverity(t *testing.T) {
	t.Parallel()
	c, err := ParseConfig([]byte(`
destinations:
- {name: mail-pager, pagerduty: {routingKeyFrom: k}}
- {name: mail-chat, slack: {webhookFrom: u}}
- {name: everyone, webhook: {urlFrom: u}}
- {name: alice-dm, slack: {tokenFrom: t, channel: U1}}
- {name: releases, slack: {tokenFrom: t, channel: C1}}
routes:
- {owner: mail, severity: page, to: [mail-pager, mail-chat]}
- {owner: mail, to: [mail-chat]}
- {severity: page, to: [everyone]}
people: {Alice@example.org: [alice-dm]}
fallback: [releases]
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		m    Message
		want []string
	}{
		"a page of an owner":                    {Message{Owner: "mail", Severity: Page}, []string{"mail-pager", "mail-chat"}},
		"a message of an owner":                 {Message{Owner: "mail", Severity: Note}, []string{"mail-chat"}},
		"a page of an owner without a route":    {Message{Owner: "shop", Severity: Page}, []string{"everyone"}},
		"a message of nobody":                   {Message{Severity: Note}, []string{"releases"}},
		"a person, whatever the case":           {Message{Owner: "mail", Severity: Page, Person: "alice@EXAMPLE.org"}, []string{"alice-dm"}},
		"a bot":                                 {Message{Owner: "mail", Severity: Page, Person: "renovate[bot]"}, []string{"releases"}},
		"a destination by name":                 {Message{Owner: "mail", Person: "alice@example.org", Destinations: []string{"everyone"}}, []string{"everyone"}},
		"a destination that is no longer there": {Message{Destinations: []string{"gone"}}, []string{"releases"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.destinations(tt.m); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
