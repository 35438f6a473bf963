package cli

import (
	"strings"
	"testing"
)

func TestPresentableWithholdsCredentials(t *testing.T) {
	for name, kv := range map[string][2]string{
		"by the key":                      {"DB_PASSWORD", "x"},
		"by the key in camel case":        {"apiKey", "x"},
		"by the key in dots":              {"spring.datasource.password", "x"},
		"a setting inside a file":         {"app.yaml", "db:\n  host: db\n  password: hunter2\n"},
		"a setting inside JSON":           {"app.json", `{"host":"db","clientSecret":"hunter2"}`},
		"a private key":                   {"tls.pem", "-----BEGIN EC PRIVATE KEY-----\nMHc\n"},
		"a URL with a password":           {"url", "postgres://app:hunter2@db:5432/app"},
		"a URL with a password alone":     {"url", "redis://:hunter2@cache:6379"},
		"a signed token":                  {"t", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc"},
		"a cloud's key":                   {"id", "AKIAIOSFODNN7EXAMPLE"},
		"a long hexadecimal value":        {"id", "9f86d081884c7d659a2feaa0c55ad015"},
		"a random value":                  {"id", "wJalrXUtnFEMI7K7MDENGbPxRfiCY1"},
		"a header":                        {"header", "Authorization: Basic dXNlcjpodW50ZXIy"},
		"a command with a password in it": {"args", "--user app --password hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, note := presentable(kv[0], kv[1]); text != "" || !strings.Contains(note, "credential") {
				t.Errorf("shown as %q (%s)", text, note)
			}
		})
	}
}

func TestPresentableShowsSettings(t *testing.T) {
	for name, tc := range map[string]struct{ key, value, text, note string }{
		"a duration":         {"LEASE_TTL", "10m", "10m", ""},
		"a host":             {"host", "orders-db.shop.svc.cluster.local:5432", "orders-db.shop.svc.cluster.local:5432", ""},
		"a URL":              {"url", "https://example.org/path/to/some/thing?limit=20", "https://example.org/path/to/some/thing?limit=20", ""},
		"a class name":       {"driver", "org.postgresql.jdbc.PostgreSQLDriverImplementation", "org.postgresql.jdbc.PostgreSQLDriverImplementation", ""},
		"a time":             {"since", "2026-06-01T12:00:00Z", "2026-06-01T12:00:00Z", ""},
		"a file's beginning": {"app.yaml", "limits:\n  cpu: 2\n", "limits:", "first line only"},
		"a long value":       {"list", strings.Repeat("ab,", 100), strings.Repeat("ab,", 26) + "a…", ""},
		"an empty value":     {"prefix", "", "", "the value is empty"},
		"bytes":              {"logo", "\x00\x01", "", "value not shown: it is not text"},
	} {
		t.Run(name, func(t *testing.T) {
			if text, note := presentable(tc.key, tc.value); text != tc.text || note != tc.note {
				t.Errorf("shown as %q (%s), want %q (%s)", text, note, tc.text, tc.note)
			}
		})
	}
}
