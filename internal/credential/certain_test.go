package credential_test

import (
	"testing"

	"tidemark.dev/tidemark/internal/credential"
)

func TestCertainAccusesCredentials(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, value, want string }{
		"a private key":             {"tls.key", "-----BEGIN RSA PRIVATE KEY-----\nMII\n", "a private key"},
		"a URL with a password":     {"url", "postgres://app:hunter2@db/app", "a URL with a password"},
		"a signed token":            {"x", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "a signed token"},
		"an access key":             {"id", "AKIAIOSFODNN7EXAMPLE", "an access key of a cloud"},
		"a password by its name":    {"DB_PASSWORD", "hunter2", "by its name a credential"},
		"an API key in camel case":  {"stripeApiKey", "51Habc99", "by its name a credential"},
		"a setting at a file's end": {"spring.datasource.password", "hunter2", "by its name a credential"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := credential.Certain(c.key, c.value); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !credential.Like(c.key, c.value) {
				t.Error("what is certain is not withheld")
			}
		})
	}
}

func TestCertainSparesSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"a certificate, which is public":   {"ca.crt", "-----BEGIN CERTIFICATE-----\nMII\n"},
		"a lifetime of tokens":             {"TOKEN_TTL", "10m"},
		"a duration under a secret's name": {"token", "10m"},
		"a place where a password is":      {"DB_PASSWORD_FILE", "/run/secrets/db"},
		"a path under a secret's name":     {"password", "/run/secrets/db"},
		"a variable to be put in":          {"password", "${DB_PASSWORD}"},
		"a template to be filled":          {"password", "{{ .Values.password }}"},
		"a switch":                         {"require_password", "true"},
		"the name of a Secret":             {"secretName", "db-credentials"},
		"a URL with a variable password":   {"url", "postgres://app:${PASSWORD}@db/app"},
		"an empty password":                {"password", ""},
		"a digest of an image":             {"image", "app@sha256:9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015"},
		"a tokenizer":                      {"tokenizer", "standard"},
		"a Secret that is there already":   {"auth.existingSecret", "pg-auth"},
		"a Secret for pulling images":      {"IMAGE_PULL_SECRET", "regcred"},
		"a Secret with a certificate":      {"TLS_SECRET", "web-tls"},
		"a name of a header":               {"csrf.header_token", "X-CSRF-Token"},
		"a word of a language model":       {"eos_token", "<|endoftext|>"},
		"another of one":                   {"pad_token", "[PAD]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := credential.Certain(c[0], c[1]); got != "" {
				t.Errorf("accused as %s", got)
			}
		})
	}
}
