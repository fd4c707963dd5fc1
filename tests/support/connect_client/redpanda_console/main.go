// Asks a Kafka Connect what the backend of Redpanda Console asks for its pages, with the client that it uses.
//
// redpanda_console ADDRESS USER PASSWORD              prints what the client has read, as JSON
// redpanda_console ADDRESS USER PASSWORD VERB NAME    pauses, resumes, stops, restarts or deletes a connector
//
// Without USER, PASSWORD is sent as a bearer token. An error of Connect is printed as {"error": "..."}.
package main

import (
	"context"
	"encoding/json"
	"os"

	connect "github.com/cloudhut/connect-client"
)

type details struct {
	Info   connect.ConnectorInfo              `json:"info"`
	Status connect.ConnectorStateInfo         `json:"status"`
	Config map[string]string                  `json:"config"`
	Topics map[string]connect.ConnectorTopics `json:"topics"`
}

type pages struct {
	Root       connect.RootResource                              `json:"root"`
	Plugins    []connect.ConnectorPluginInfo                     `json:"plugins"`
	Names      []string                                          `json:"names"`
	Connectors map[string]connect.ListConnectorsResponseExpanded `json:"connectors"`
	Details    map[string]details                                `json:"details"`
}

func show(value any) {
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		show(map[string]string{"error": err.Error()})
		os.Exit(0)
	}
	return value
}

func main() {
	ctx := context.Background()
	options := []connect.ClientOption{connect.WithHost(os.Args[1]), connect.WithUserAgent("Redpanda Console")}
	if os.Args[2] == "" {
		options = append(options, connect.WithAuthToken(os.Args[3]))
	} else {
		options = append(options, connect.WithBasicAuth(os.Args[2], os.Args[3]))
	}
	client := connect.NewClient(options...)
	if len(os.Args) > 5 {
		verbs := map[string]func(context.Context, string) error{
			"pause":  client.PauseConnector,
			"resume": client.ResumeConnector,
			"stop":   client.StopConnector,
			"delete": client.DeleteConnector,
			"restart": func(ctx context.Context, name string) error {
				return client.RestartConnector(ctx, name, connect.RestartConnectorOptions{})
			},
			"read": func(ctx context.Context, name string) error {
				_, err := client.GetConnector(ctx, name)
				return err
			},
		}
		must(struct{}{}, verbs[os.Args[4]](ctx, os.Args[5]))
		show(map[string]string{})
		return
	}
	read := pages{
		Root:       must(client.GetRoot(ctx)),
		Plugins:    must(client.GetConnectorPlugins(ctx)),
		Names:      must(client.ListConnectors(ctx)),
		Connectors: must(client.ListConnectorsExpanded(ctx)),
		Details:    map[string]details{},
	}
	for _, name := range read.Names {
		read.Details[name] = details{
			must(client.GetConnector(ctx, name)),
			must(client.GetConnectorStatus(ctx, name)),
			must(client.GetConnectorConfig(ctx, name)),
			must(client.GetConnectorTopics(ctx, name)),
		}
	}
	show(read)
}
