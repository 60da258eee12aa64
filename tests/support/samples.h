// Valid manifests, region lists and messages, fixed and random: for the tests of the codecs, for
// the seeds of the fuzzers.
#pragma once

#include <vector>

#include "format/files.h"
#include "format/manifest.h"
#include "format/object.h"
#include "format/parity_manifest.h"
#include "format/segment.h"
#include "format/streams.h"
#include "support/seed.h"
#include "wire/message.h"
#include "wire/peer_message.h"
#include "wire/tree_message.h"

namespace backstay::test {

// The manifest of the worked example of docs/format/segment.md.
format::Manifest example_manifest();
// A manifest of three nodes, (2, 1), without objects.
format::ParityManifest example_parity_manifest();
// The regions of the worked example of docs/format/object.md, laid out.
std::vector<format::Region> example_regions();
format::CommitRecord example_commit();
format::SegmentHeader example_segment();

// 0 to 8 objects of ranks and writers, of all kinds, of 0 to 6 chunks each, slots in random order,
// some unused space between them, some chunks in older versions.
format::Manifest random_manifest(Random& random);
// The captured files of the worked example of docs/format/files.md; their payload has 22 bytes.
std::vector<format::CapturedFile> example_files();
// 0 to 8 files with 0 to 12 extents each, which overlap, in an object with so many bytes of
// payload.
std::vector<format::CapturedFile> random_files(Random& random, std::uint64_t payload_bytes);
// The streams of the worked example of docs/format/streams.md, and the bytes in front of their
// index.
std::vector<format::Stream> example_streams();
std::string example_stream_text();
// 1 to 8 streams that were written in turn, and how many bytes they have together.
std::vector<format::Stream> random_streams(Random& random, std::uint64_t& bytes);
// 0 to 12 regions of all kinds and types, laid out.
std::vector<format::Region> random_regions(Random& random);

// One of each type in the order of wire::Message, every field set to something.
std::vector<wire::Message> one_of_each_message();
// The same of wire::tree::Message.
std::vector<wire::tree::Message> one_of_each_tree_message();
// The same of wire::peer::Message.
std::vector<wire::peer::Message> one_of_each_peer_message();

}  // namespace backstay::test
