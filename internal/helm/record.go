package helm

import (
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "tidemark.dev/tidemark/api/v1"
	"tidemark.dev/tidemark/internal/release"
)

// SecretType is the type of the Secrets in which Helm keeps its records.
const SecretType corev1.SecretType = "helm.sh/release.v1"

// Records select Helm's records among Secrets. ConfigMaps have no type; for them the label must do.
func Records() []client.ListOption {
	return []client.ListOption{
		owned, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("type", string(SecretType))},
	}
}

var owned = client.MatchingLabels{"owner": "helm"}

// recordName is how Helm names its records.
var recordName = regexp.MustCompile(`^sh\.helm\.release\.v1\.(.+)\.v([0-9]+)$`)

// decodeRecord reads a record's metadata. The name of the release is also given with an error, where the record has one.
func decodeRecord(m *metav1.PartialObjectMetadata) (name string, r release.Revision, err error) {
	name = m.Labels["name"]
	named := recordName.FindStringSubmatch(m.Name)
	if name == "" && named != nil {
		name = named[1]
	}
	number, parseErr := strconv.ParseInt(m.Labels["version"], 10, 64)
	switch {
	case m.Labels["name"] == "":
		err = fmt.Errorf("label %q is missing", "name")
	case parseErr != nil || number < 1:
		err = fmt.Errorf("label %q is %q, which is no revision", "version", m.Labels["version"])
	case len(named) == 3 && named[2] != m.Labels["version"]:
		err = fmt.Errorf("label %q is %q, its name says %s", "version", m.Labels["version"], named[2])
	case m.Labels["status"] == "":
		err = fmt.Errorf("label %q is missing", "status")
	}
	return name, release.Revision{
		Record: m.Name, Number: number, Status: release.Status(m.Labels["status"]), Created: m.CreationTimestamp.Time,
		Deploy: m.Labels[v1.LabelDeploy],
	}, err
}
