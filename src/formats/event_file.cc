// TensorBoard's files: records with masked checksums, each an Event protocol buffer.

#include "formats/event_file.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "base/crc/crc32c.h"
#include "base/excerpt.h"
#include "base/message.h"
#include "base/utf8.h"
#include "formats/coding.h"
#include "formats/file/atomic_file.h"
#include "formats/file/byte_source.h"
#include "formats/proto_fields.h"
#include "openrnn/formats.h"

namespace openrnn {

using formats::message_field;
using formats::varint_field;
using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;
using protozero::tag_and_type;

namespace {

// Fields of Event, Summary and Summary.Value.
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;
constexpr std::uint64_t kHeaderBytes = 12;

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string frame(std::string_view data) {
  std::string record;
  formats::put_fixed(&record, std::uint64_t{data.size()});
  formats::put_fixed(&record, mask_crc(crc32c(record)));
  record += data;
  formats::put_fixed(&record, mask_crc(crc32c(data)));
  return record;
}

std::string numbered_file_name(const std::string& folder, double time) {
  static std::atomic<int> count = 0;  // distinguishes files that one process opens in one second
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1)) host[0] = '\0';
  return message(folder, "/events.out.tfevents.", static_cast<std::int64_t>(time), ".",
                 host[0] ? host : "localhost", ".", ::getpid(), ".", count++);
}

// A restarted container has the same host name and reuses process ids.
std::string new_file_name(const std::string& folder, double time) {
  std::string name = numbered_file_name(folder, time);
  while (formats::file_exists(name)) name = numbered_file_name(folder, time);
  return name;
}

void check_tag(const std::string& tag) {
  if (is_printable_utf8(tag)) return;
  throw ArgumentError(message("[add_scalar] the tag ", excerpt(tag),
                              " is not UTF-8 or holds a control character, expected neither"));
}

}  // namespace

struct EventWriter::Impl {
  explicit Impl(const std::string& path) : file(path) { file.keep(); }
  formats::OutputFile file;
};

EventWriter::EventWriter(const std::string& folder)
    : impl_(new Impl(new_file_name(folder, now()))) {
  std::string event;
  pbf_writer out(event);
  out.add_double(kWallTime, now());
  out.add_string(kFileVersion, "brain.Event:2");
  impl_->file.write(frame(event));
  impl_->file.flush();
}

EventWriter::~EventWriter() {
  try {
    if (impl_) flush();
  } catch (const Error&) {  // a destructor cannot report it
  }
}
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;

const std::string& EventWriter::path() const noexcept { return impl_->file.path(); }

void EventWriter::add_scalar(const std::string& tag, std::int64_t step, double value) {
  add_scalar(tag, step, value, now());
}

void EventWriter::add_scalar(const std::string& tag, std::int64_t step, double value,
                             double wall_time) {
  check_tag(tag);
  std::string event;
  pbf_writer out(event);
  out.add_double(kWallTime, wall_time);
  out.add_int64(kStep, step);
  {
    pbf_writer summary(out, kSummary);
    pbf_writer entry(summary, kValue);
    entry.add_string(kTag, tag);
    entry.add_float(kSimpleValue, static_cast<float>(value));
  }
  impl_->file.write(frame(event));
}

void EventWriter::flush() { impl_->file.flush(); }

namespace {

void decode_value(pbf_reader in, std::vector<ScalarEvent>* events) {
  ScalarEvent event;
  bool has_value = false;
  while (in.next()) {
    if (in.tag_and_type() == message_field(kTag)) {
      event.tag = in.get_string();
    } else if (in.tag_and_type() == tag_and_type(kSimpleValue, pbf_wire_type::fixed32)) {
      event.value = static_cast<double>(in.get_float());
      has_value = true;
    } else {
      in.skip();
    }
  }
  if (has_value) events->push_back(std::move(event));
}

void decode_event(std::string_view bytes, std::vector<ScalarEvent>* events) {
  ScalarEvent common;
  const std::size_t first = events->size();
  pbf_reader in(bytes.data(), bytes.size());
  while (in.next()) {
    if (in.tag_and_type() == tag_and_type(kWallTime, pbf_wire_type::fixed64)) {
      common.wall_time = in.get_double();
    } else if (in.tag_and_type() == varint_field(kStep)) {
      common.step = in.get_int64();
    } else if (in.tag_and_type() == message_field(kSummary)) {
      pbf_reader summary = in.get_message();
      while (summary.next(kValue, pbf_wire_type::length_delimited)) {
        decode_value(summary.get_message(), events);
      }
    } else {
      in.skip();
    }
  }
  for (std::size_t i = first; i < events->size(); ++i) {
    (*events)[i].step = common.step;
    (*events)[i].wall_time = common.wall_time;
  }
}

void check(const std::string& path, std::uint64_t offset, std::string_view bytes,
           std::uint32_t expected) {
  const std::uint32_t found = mask_crc(crc32c(bytes));
  if (found != expected) {
    throw FormatError(path, offset,
                      message("a record has checksum ", found, ", expected ", expected));
  }
}

}  // namespace

std::vector<ScalarEvent> formats::decode_scalar_events(const std::string& path,
                                                       std::string_view bytes) {
  std::vector<ScalarEvent> events;
  ByteCursor in(bytes);
  while (in.remaining() >= kHeaderBytes) {
    const std::uint64_t offset = bytes.size() - in.remaining();
    std::uint64_t size = 0;
    std::uint32_t size_crc = 0, data_crc = 0;
    in.fixed(&size);
    in.fixed(&size_crc);
    check(path, offset, bytes.substr(offset, sizeof size), size_crc);
    std::string_view data;
    if (!in.bytes(size, &data) || !in.fixed(&data_crc)) break;  // still being written
    check(path, offset + kHeaderBytes, data, data_crc);
    const std::size_t first = events.size();
    try {
      decode_event(data, &events);
    } catch (const protozero::exception&) {
      throw FormatError(path, offset + kHeaderBytes, "a record is not an event");
    }
    for (std::size_t i = first; i < events.size(); ++i) {
      if (is_printable_utf8(events[i].tag)) continue;
      throw FormatError(path, offset + kHeaderBytes,
                        message("the tag ", excerpt(events[i].tag),
                                " is not UTF-8 or holds a control character, expected neither"));
    }
  }
  return events;
}

std::vector<ScalarEvent> read_scalar_events(const std::string& path) {
  return formats::decode_scalar_events(path, formats::read_all(formats::open_regular(path), path));
}

}  // namespace openrnn
