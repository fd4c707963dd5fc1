// Prints what franz-go's consumer finds in a topic up to the offsets that are named: a line of JSON for each record.
//
// read_topic ADDRESS TOPIC PARTITION=END...
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

type header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

type record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ends := map[int32]int64{}
	begins := map[int32]kgo.Offset{}
	for _, argument := range os.Args[3:] {
		number, end, _ := strings.Cut(argument, "=")
		partition, err := strconv.ParseInt(number, 10, 32)
		must(err)
		offset, err := strconv.ParseInt(end, 10, 64)
		must(err)
		ends[int32(partition)], begins[int32(partition)] = offset, kgo.NewOffset().AtStart()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{os.Args[2]: begins}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(), // so that a partition that ends with a marker is seen to end
	)
	must(err)
	defer client.Close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for len(ends) > 0 {
		fetches := client.PollFetches(context.Background())
		fetches.EachError(func(_ string, _ int32, err error) { must(err) })
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				headers := []header{}
				for _, h := range r.Headers {
					headers = append(headers, header{h.Key, h.Value})
				}
				line, err := json.Marshal(record{r.Partition, r.Offset, r.Timestamp.UnixMilli(), r.Key, r.Value, headers})
				must(err)
				_, err = out.Write(append(line, '\n'))
				must(err)
			}
			if r.Offset+1 >= ends[r.Partition] {
				delete(ends, r.Partition)
			}
		})
	}
}
