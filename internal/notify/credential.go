package notify

import (
	"io"
	"net/url"
	"os"
	"strings"
)

// maxCredential bounds what is read of an entry, in bytes.
const maxCredential = 8 << 10

// credentials reads the entries of a Secret that is mounted at a directory. Each is read when it is needed, so that a rotated
// one is used at once and none is kept.
type credentials struct{ directory string }

// read gives an entry; the failure names it and never its content.
func (c credentials) read(entry string) (string, *DeliveryError) {
	if c.directory == "" {
		return "", &DeliveryError{Cause: CauseCredential, Detail: "there is no directory of credentials: set --notify-credentials"}
	}
	missing := &DeliveryError{Cause: CauseCredential, Detail: "entry " + entry + " of the Secret with the credentials cannot be read: add it, or mend its name in the configuration"}
	root, err := os.OpenRoot(c.directory)
	if err != nil {
		return "", missing
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(entry)
	if err != nil {
		return "", missing
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxCredential))
	if err != nil {
		return "", missing
	}
	value := strings.TrimSpace(string(text))
	if value == "" || strings.ContainsAny(value, "\r\n") {
		return "", &DeliveryError{Cause: CauseCredential, Detail: "entry " + entry + " of the Secret with the credentials is empty, or has more than one line"}
	}
	return value, nil
}

// address gives a URL: the literal one, or that of an entry, with a path added.
func (c credentials) address(literal, entry, path string) (string, *DeliveryError) {
	if entry == "" {
		return strings.TrimSuffix(literal, "/") + path, nil
	}
	text, failure := c.read(entry)
	if failure != nil {
		return "", failure
	}
	if u, err := url.Parse(text); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", &DeliveryError{Cause: CauseCredential, Detail: "entry " + entry + " of the Secret with the credentials is not a URL: want https://HOST/PATH"}
	}
	if path == "" {
		return text, nil
	}
	return strings.TrimSuffix(text, "/") + path, nil
}

// token gives the entry's content; "" where none is named.
func (c credentials) token(entry string) (string, *DeliveryError) {
	if entry == "" {
		return "", nil
	}
	return c.read(entry)
}
