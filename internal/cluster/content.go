package cluster

import (
	corev1 "k8s.io/api/core/v1"

	"tidemark.dev/tidemark/internal/digest"
)

// ContentOfConfigMap reduces a ConfigMap as the API has it to its content.
func ContentOfConfigMap(cm *corev1.ConfigMap) digest.Content {
	return digest.OfConfigMap(cm.Namespace, cm.Name, cm.Data, cm.BinaryData)
}

// ContentOfSecret reduces a Secret as the API has it to its content.
func ContentOfSecret(key *digest.Key, s *corev1.Secret) digest.Content {
	return digest.OfSecret(key, s.Namespace, s.Name, s.Data)
}
