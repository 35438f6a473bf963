package client

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// tokenSeconds is longer than any lab is kept.
const tokenSeconds = 24 * 60 * 60

// RESTConfigForServiceAccount returns the configuration of a client that has exactly the rights of a service
// account, by a token requested for it.
func (l *Lab) RESTConfigForServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(l.RESTConfig())
	if err != nil {
		return nil, err
	}
	seconds := int64(tokenSeconds)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request token for service account %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(l.RESTConfig())
	config.BearerToken = answer.Status.Token
	return config, nil
}
