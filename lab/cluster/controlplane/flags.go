package controlplane

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tidemark.dev/tidemark/lab/cluster/pki"
)

// parse sets a component's options the way its command does. Each component has a flag set of its own, because
// their flags share names.
func parse(sets map[string]*pflag.FlagSet, args []string) error {
	all := pflag.NewFlagSet("component", pflag.ContinueOnError)
	for _, set := range sets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		return fmt.Errorf("parse flags: %w", err)
	}
	return nil
}

func (c *ControlPlane) writeKubeconfig(name string, of pki.Identity) (string, error) {
	config, err := c.RESTConfig(of)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.options.Directory, name)
	return path, WriteKubeconfig(path, config)
}

// WriteKubeconfig writes a file with which kubectl acts as the client.
func WriteKubeconfig(path string, client *rest.Config) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: client.Host, CertificateAuthorityData: client.CAData}
	config.AuthInfos["lab"] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertData, ClientKeyData: client.KeyData}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	config.CurrentContext = "lab"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig %s: %w", path, err)
	}
	return nil
}
