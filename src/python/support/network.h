// An RnnSpec as Python has it: keyword arguments by the names of rnn_fields().
#pragma once

#include "openrnn/spec_fields.h"
#include "python/support/convert.h"

namespace openrnn::python {

/// The fields that `options` has, and 'device'; what it does not have is at its default, and so is
/// a dtype of None. Other keys are left alone. Throws: TypeError naming call and field, and as
/// RnnField::put.
RnnSpec as_network(const char* call, const nb::dict& options);
/// The value of one field, which messages call `name`. Throws: TypeError naming call and name.
FieldValue value_of(const char* call, std::string_view name, const RnnField& field,
                    nb::handle value);
/// Sets one field. Throws: as as_network.
void set_field(const char* call, RnnSpec& spec, const RnnField& field, nb::handle value);
/// The inverse, without 'device': the fields that stand in `spec`, of those that are `wanted`.
nb::dict network_dict(const RnnSpec& spec, bool (*wanted)(const RnnField&));
/// None, bool, int, float, str or a tuple of two; 'dtype' as NumPy names it.
nb::object python_of(const RnnField& field, const RnnSpec& spec);
/// Throws: TypeError as Python's own for a key that is no field, or one of `without`.
void require_fields(const std::string& call, const nb::dict& options,
                    const std::vector<std::string>& without);

/// Its type in Python: "int", "str | None".
std::string annotation(const RnnField& field);

void bind_fields(nb::module_& m);
void bind_explain(nb::module_& m);

}  // namespace openrnn::python
