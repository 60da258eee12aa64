// The codec's entries for the messages about cuts, which are types of two protocols. For the .cc
// files of those only, behind wire/codec.h.
#pragma once

#include "wire/codec.h"
#include "wire/cut_message.h"

namespace backstay::wire::codec {

template <>
inline constexpr auto fields_of<CutClock> = std::tuple(&CutClock::communicator, &CutClock::least,
                                                       &CutClock::most);
template <>
inline constexpr auto fields_of<CutNeed> = std::tuple(&CutNeed::waiting, &CutNeed::peer,
                                                      &CutNeed::what, &CutNeed::count);
template <>
inline constexpr auto fields_of<CutTarget> = std::tuple(&CutTarget::communicator,
                                                        &CutTarget::clock);
template <>
inline constexpr auto fields_of<AskCut> = std::tuple(&AskCut::after, &AskCut::timeout_ms);
template <>
inline constexpr auto fields_of<CutReport> = std::tuple(&CutReport::cut, &CutReport::round,
                                                        &CutReport::ranks, &CutReport::reached,
                                                        &CutReport::standing, &CutReport::closed,
                                                        &CutReport::saved, &CutReport::ended,
                                                        &CutReport::sent, &CutReport::taken_in,
                                                        &CutReport::newest, &CutReport::clocks,
                                                        &CutReport::needs, &CutReport::more);
template <>
inline constexpr auto fields_of<RefuseCut> = std::tuple(&RefuseCut::cut, &RefuseCut::code,
                                                        &RefuseCut::message);
template <>
inline constexpr auto fields_of<CutOrder> = std::tuple(&CutOrder::cut, &CutOrder::what,
                                                       &CutOrder::round, &CutOrder::version,
                                                       &CutOrder::targets, &CutOrder::needs,
                                                       &CutOrder::more);
template <>
inline constexpr auto fields_of<CutOver> = std::tuple(&CutOver::cut, &CutOver::code,
                                                      &CutOver::message);

}  // namespace backstay::wire::codec
